//go:build linux

package supervisor

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/zap"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/kubelet"
)

// fill gives every exported field below v a value of its own, none of them zero.
func fill(v reflect.Value, next *int64) {
	*next++
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), next)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), next)
		fill(v.Index(1), next)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(*next, 0).UTC()))
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), next)
			}
		}
	case reflect.String:
		v.SetString(map[bool]string{true: "Exited", false: strings.Repeat("x", int(*next))}[v.Type() == reflect.TypeFor[core.Cause]()])
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		if v.SetInt(*next); v.Type().Name() == "Outcome" {
			v.SetInt(1)
		}
	case reflect.Uint64:
		v.SetUint(uint64(*next))
	}
}

// Nothing that the core knows is lost over a reload, whatever field is added to it: but what is under way, and nothing is.
func TestTheWholeStateIsHandedOver(t *testing.T) {
	var before core.State
	next := int64(0)
	fill(reflect.ValueOf(&before).Elem(), &next)
	data, err := json.Marshal(before)
	if err != nil {
		t.Fatal(err)
	}
	var handed core.State
	if err := json.Unmarshal(data, &handed); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, handed, cmpopts.IgnoreUnexported(core.State{}, core.Progress{})); diff != "" {
		t.Errorf("handed over (-want +got):\n%s", diff)
	}
}

// A kubelet that keeps crashing does not start anew with the shortest wait because of a reload.
func TestTheBackoffIsHandedOver(t *testing.T) {
	n := newNode(t)
	n.options.Logger = zap.NewNop()
	before, err := newLoop(n.options)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		before.runner.kubelets.Delay()
	}
	h := handedOver(t, before)
	before.close()
	after, err := newLoop(n.options)
	if err != nil {
		t.Fatal(err)
	}
	defer after.close()
	if err := after.inherit(&h); err != nil {
		t.Fatal(err)
	}
	if want, got := before.runner.kubelets.Delay(), after.runner.kubelets.Delay(); got != want || got <= 250*time.Millisecond {
		t.Errorf("the next start waits %s, and would have waited %s", got, want)
	}
}

// handedOver is what the program gets that takes over.
func handedOver(t *testing.T, before *loop) (h Handover) {
	t.Helper()
	data, err := json.Marshal(before.handOver())
	if err == nil {
		err = json.Unmarshal(data, &h)
	}
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestAHandoverThatIsNotForUs(t *testing.T) {
	own := kubelet.ProcessOf(os.Getpid())
	whole := Handover{Version: HandoverVersion, Supervisor: own, Core: core.State{Booted: true}}
	change := func(change func(*Handover)) string {
		h := whole
		change(&h)
		data, err := json.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	for name, row := range map[string]struct{ data, want string }{
		"it is":                  {change(func(*Handover) {}), ""},
		"nothing":                {"", "decoding what was handed over"},
		"another version":        {change(func(h *Handover) { h.Version = "v1" }), `is of version "v1", and this program reads "v3"`},
		"another process":        {change(func(h *Handover) { h.Supervisor.PID = 1 }), "for another process, with pid 1"},
		"an earlier process":     {change(func(h *Handover) { h.Supervisor.StartTime++ }), "is for another process"},
		"a kubelet but no state": {change(func(h *Handover) { h.Child = &kubelet.HandedChild{} }), "contradicts itself"},
		"a state but no kubelet": {change(func(h *Handover) { h.Core.Child.Alive = true }), "contradicts itself"},
		"before the first step":  {change(func(h *Handover) { h.Core.Booted = false }), "contradicts itself"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := decodeHandover([]byte(row.data))
			if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestTheVariableIsNotForChildren(t *testing.T) {
	for _, value := range []string{"", "x", "1,2,3", "999999,999998,999997", "-1,-1,-1", "5000"} {
		t.Setenv(handoverVariable, value)
		if h := TakeHandover(); h == nil || h.broken == nil || h.KubeletPath() != "" {
			t.Errorf("%q: %+v", value, h)
		}
		if _, is := os.LookupEnv(handoverVariable); is {
			t.Errorf("%q is still set", value)
		}
	}
	if h := TakeHandover(); h != nil || h.KubeletPath() != "" {
		t.Errorf("without the variable: %+v", h)
	}
}

func FuzzHandover(f *testing.F) {
	f.Add([]byte(`{"Version":"v3","Supervisor":{"pid":1},"Core":{"Booted":true}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := decodeHandover(data)
		if err == nil && h.Supervisor.PID != os.Getpid() {
			t.Errorf("took a handover for another process: %+v", h)
		}
	})
}
