package systemd

import (
	"strings"
	"sync"
	"testing"

	"github.com/godbus/dbus/v5"
	"github.com/godbus/dbus/v5/prop"
	"github.com/google/go-cmp/cmp"
)

const slicePath = "/org/freedesktop/systemd1/unit/x_2eslice"

// playedManager has one slice, and hears what is to be changed.
type playedManager struct {
	mu  sync.Mutex
	set map[string]uint64
}

type playedProperty struct {
	Name  string
	Value dbus.Variant
}

func noSuchUnit() *dbus.Error {
	return dbus.NewError("org.freedesktop.systemd1.NoSuchUnit", []any{"Unit y.slice not loaded."})
}

// GetUnit is the manager's method of that name.
func (*playedManager) GetUnit(name string) (dbus.ObjectPath, *dbus.Error) {
	if name != "x.slice" {
		return "", noSuchUnit()
	}
	return slicePath, nil
}

// SetUnitProperties is the manager's method of that name.
func (p *playedManager) SetUnitProperties(name string, runtime bool, properties []playedProperty) *dbus.Error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if name != "x.slice" || !runtime { // not runtime: it would outlive the boot
		return noSuchUnit()
	}
	for _, property := range properties {
		p.set[property.Name], _ = property.Value.Value().(uint64)
	}
	return nil
}

// The properties of a slice that are numbers are read, and changed until the next boot.
func TestSliceProperties(t *testing.T) {
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent/bus")
	if _, err := SliceProperties(t.Context(), "x.slice"); err == nil || !strings.HasPrefix(err.Error(), "asking systemd about x.slice: ") {
		t.Errorf("without systemd: %v", err)
	}
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", startBus(t))
	connection, played := connectBus(t), &playedManager{set: map[string]uint64{}}
	if reply, err := connection.RequestName(unitsName, dbus.NameFlagDoNotQueue); err != nil || reply != dbus.RequestNameReplyPrimaryOwner {
		t.Fatalf("taking systemd's name: %v %v", reply, err)
	}
	properties := map[string]map[string]*prop.Prop{unitsName + ".Slice": {"MemoryMax": {Value: ^uint64(0)}, "TasksMax": {Value: uint64(77)}, "Slice": {Value: "-.slice"}}}
	if _, err := prop.Export(connection, slicePath, properties); err != nil {
		t.Fatal(err)
	}
	if err := connection.Export(played, unitsPath, unitsManager); err != nil {
		t.Fatal(err)
	}
	got, err := SliceProperties(t.Context(), "x.slice")
	if want := map[string]uint64{"MemoryMax": ^uint64(0), "TasksMax": 77}; err != nil || !cmp.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	want := map[string]uint64{"MemoryMax": 1 << 30, "CPUWeight": ^uint64(0)}
	err = SetSliceProperties(t.Context(), "x.slice", want)
	played.mu.Lock()
	if err != nil || !cmp.Equal(played.set, want) {
		t.Errorf("%v, set %v", err, played.set)
	}
	played.mu.Unlock()
	if _, err := SliceProperties(t.Context(), "y.slice"); err == nil || !strings.Contains(err.Error(), "not loaded") {
		t.Errorf("of a slice that is not there: %v", err)
	}
	if err := SetSliceProperties(t.Context(), "y.slice", want); err == nil || !strings.Contains(err.Error(), "not loaded") {
		t.Errorf("of a slice that is not there: %v", err)
	}
}
