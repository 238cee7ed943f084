//go:build linux

package kubelet

import (
	"reflect"
	"strings"
	"testing"

	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
)

// The fields of the internal type are called as those of v1beta1 in Go, and are told so. What is of another package, as what is logged, has its own
// names already.
func TestEveryFieldHasItsName(t *testing.T) {
	seen := 0
	var look func(of reflect.Type)
	look = func(of reflect.Type) {
		for i := range of.NumField() {
			field := of.Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name == "" {
				continue // TypeMeta, which is not told
			}
			seen++
			if got := versionedName(field.Name); got != name {
				t.Errorf("%s.%s becomes %s, want %s", of.Name(), field.Name, got, name)
			}
			value := field.Type
			for value.Kind() == reflect.Pointer || value.Kind() == reflect.Slice {
				value = value.Elem()
			}
			hasFields := value.Kind() == reflect.Struct && value.PkgPath() == of.PkgPath()
			if hasFields != structFields[name] {
				t.Errorf("%s has fields of the internal type: %t, want %t", name, structFields[name], hasFields)
			}
			if hasFields {
				look(value)
			}
		}
	}
	look(reflect.TypeFor[kubeletv1beta1.KubeletConfiguration]())
	if seen < 100 {
		t.Errorf("only %d fields were looked at", seen)
	}
}
