package core

import (
	"reflect"
	"testing"
)

// Each part of what is durable is part of the state, and is restored to where it was.
func TestDurableIsWhole(t *testing.T) {
	var d Durable
	for _, part := range []reflect.Value{reflect.ValueOf(&d).Elem(), reflect.ValueOf(&d.Account).Elem()} {
		for i := range part.NumField() {
			if part.Type().Field(i).Anonymous {
				continue
			}
			d = Durable{}
			fill(part.Field(i))
			s := New(Settings{})
			if s.restore(d); !reflect.DeepEqual(s.durable(), d) {
				t.Errorf("%s is lost", part.Type().Field(i).Name)
			}
		}
	}
}

// fill gives a value something else than its zero value.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Struct:
		fill(v.Field(0))
	}
}
