package systemd

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/godbus/dbus/v5"
)

// The manager of units (org.freedesktop.systemd1(5)).
const (
	unitsName     = "org.freedesktop.systemd1"
	unitsPath     = "/org/freedesktop/systemd1"
	unitsManager  = unitsName + ".Manager"
	unitsPatience = 2 * time.Second // a kubelet waits for it
)

// SliceProperties are those properties of a slice that are numbers, such as MemoryMax; an error where systemd does not
// run, or has no such slice.
func SliceProperties(ctx context.Context, slice string) (map[string]uint64, error) {
	properties := map[string]uint64{}
	err := withUnits(ctx, func(ctx context.Context, connection *dbus.Conn) error {
		var path dbus.ObjectPath
		found := connection.Object(unitsName, unitsPath).CallWithContext(ctx, unitsManager+".GetUnit", dbus.FlagNoAutoStart, slice)
		if err := found.Store(&path); err != nil {
			return err
		}
		var all map[string]dbus.Variant
		shown := connection.Object(unitsName, path).
			CallWithContext(ctx, "org.freedesktop.DBus.Properties.GetAll", dbus.FlagNoAutoStart, unitsName+".Slice")
		if err := shown.Store(&all); err != nil {
			return err
		}
		for name, value := range all {
			if number, is := value.Value().(uint64); is {
				properties[name] = number
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("asking systemd about %s: %w", slice, err)
	}
	return properties, nil
}

// SetSliceProperties changes properties until the host's next boot, as the kubelet does.
func SetSliceProperties(ctx context.Context, slice string, properties map[string]uint64) error {
	type property struct {
		Name  string
		Value dbus.Variant
	}
	var list []property
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		list = append(list, property{name, dbus.MakeVariant(properties[name])})
	}
	err := withUnits(ctx, func(ctx context.Context, connection *dbus.Conn) error {
		return connection.Object(unitsName, unitsPath).
			CallWithContext(ctx, unitsManager+".SetUnitProperties", dbus.FlagNoAutoStart, slice, true, list).Err
	})
	if err != nil {
		return fmt.Errorf("changing properties of %s at systemd: %w", slice, err)
	}
	return nil
}

// withUnits asks within unitsPatience. Where the time is over, the error is [context.DeadlineExceeded]: the next
// question has no answer either.
func withUnits(ctx context.Context, ask func(context.Context, *dbus.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, unitsPatience)
	defer cancel()
	connection, err := connectSystemBus(ctx)
	if err == nil {
		defer func() { _ = connection.Close() }()
		err = ask(ctx, connection)
	}
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("no answer on the system bus: %w", ctx.Err())
	}
	return err
}
