package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// remadeEvery is the shortest time between two replacements of an object, because nodes may read it.
const remadeEvery = time.Minute

var errRemade = errors.New("the object was created again less than a minute ago, and will be created again within a minute")

// maker makes and deletes objects. It knows which ones it has made again lately.
type maker struct {
	live       client.Reader
	writer     writer
	monotonic  func() time.Duration
	serverTime func() time.Time
	log        logr.Logger
	// remade is when an object was deleted to be made again, or because admission had changed it. begun is when this process began.
	remade map[string]time.Duration
	begun  time.Duration
}

func newMaker(p parts) *maker {
	return &maker{live: p.live, writer: p.writer, monotonic: p.monotonic, serverTime: p.serverTime, log: p.log, remade: map[string]time.Duration{},
		begun: p.monotonic()}
}

// remadeLately reports whether an object was deleted so recently that it may not be deleted again yet.
func (m *maker) remadeLately(name string, now time.Duration) bool {
	maps.DeleteFunc(m.remade, func(_ string, at time.Duration) bool { return now-at >= remadeEvery })
	_, lately := m.remade[name]
	return lately
}

// making is an object to make.
type making struct {
	wanted client.Object
	// there is where the object that has the name already is read into, and same compares it with what is wanted.
	there client.Object
	same  func() bool
	// altered means that admission changed the object at the last attempt.
	altered bool
}

// make makes an object, and returns it as it was stored. If this controller made the existing object of that name, and it differs, it is deleted first;
// an object of another program stays, which is an error. Both objects have the same name, a hash of the content, so the new one cannot be made first. A
// dry run under another name is made first instead, and if it is refused, the old object stays.
func (m *maker) make(ctx context.Context, o making) (client.Object, error) {
	name := o.wanted.GetName()
	if o.altered { // a dry run leaves nothing to delete
		if err := m.rehearse(ctx, o.wanted, name); err != nil {
			return nil, err
		}
		if m.remadeLately(name, m.monotonic()) {
			return nil, errRemade
		}
	}
	made, err := m.create(ctx, o.wanted)
	if !apierrors.IsAlreadyExists(err) {
		return made, err
	}
	if getErr := m.live.Get(ctx, client.ObjectKeyFromObject(o.wanted), o.there); getErr != nil {
		return nil, getErr
	}
	if o.same() && o.there.GetLabels()[PoolLabel] == o.wanted.GetLabels()[PoolLabel] {
		return o.there, nil // the answer to an earlier request was lost
	}
	if !isOurs(o.there) {
		return nil, fmt.Errorf("an object of this name is there, and it is not replaced, because its labels do not say that %s made it; delete it: %w", Name, err)
	}
	now := m.monotonic()
	if age := m.serverTime().Sub(o.there.GetCreationTimestamp().Time); m.remadeLately(name, now) || now-m.begun < remadeEvery && age < remadeEvery {
		return nil, errRemade // another process may have made it
	}
	if err := m.rehearse(ctx, o.wanted, otherName(name)); err != nil {
		return nil, err
	}
	m.log.Info("an object does not have the content that its name stands for, and is created again", "name", name)
	m.remade[name] = now
	if err := m.delete(ctx, o.there); err != nil {
		return nil, err
	}
	return m.create(ctx, o.wanted)
}

// rehearse makes a dry run, and returns an error if the object would be refused or changed. Where a webhook does not support dry runs, it returns nil.
func (m *maker) rehearse(ctx context.Context, wanted client.Object, name string) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	tried := wanted.DeepCopyObject().(client.Object)
	tried.SetName(name)
	err := m.writer.Create(ctx, tried, client.DryRunAll)
	if apierrors.IsAlreadyExists(err) || apierrors.IsBadRequest(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return differs(wanted, tried)
}

// otherName is a name that no object has, and that policies treat in the same way.
func otherName(name string) string {
	cut := strings.LastIndexByte(name, '-') + 1
	hash := []byte(name[cut:])
	slices.Reverse(hash)
	return name[:cut] + string(hash)
}

// create makes an object, and deletes it if what was stored is not what was sent: no node refers to it yet, and its content has to match the hash in
// its name.
func (m *maker) create(ctx context.Context, wanted client.Object) (client.Object, error) {
	request, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	made := wanted.DeepCopyObject().(client.Object)
	if err := m.writer.Create(request, made); err != nil {
		return nil, err
	}
	if err := differs(wanted, made); err != nil {
		m.remade[made.GetName()] = m.monotonic()
		return nil, errors.Join(err, m.delete(ctx, made))
	}
	return made, nil
}

// differs returns an error that says what admission has changed in an object. Additional labels and annotations are harmless.
func differs(sent, stored client.Object) error {
	var all []string
	for _, label := range slices.Sorted(maps.Keys(sent.GetLabels())) {
		if got, is := stored.GetLabels()[label]; !is {
			all = append(all, "takes the label "+label+" away")
		} else if got != sent.GetLabels()[label] {
			all = append(all, "changes the label "+label)
		}
	}
	if len(stored.GetOwnerReferences()) > 0 {
		all = append(all, "gives it an owner")
	}
	switch sent := sent.(type) {
	case *corev1.ConfigMap:
		all = append(all, differsInData(sent, stored.(*corev1.ConfigMap))...)
	case *appsv1.ControllerRevision:
		if stored := stored.(*appsv1.ControllerRevision); sent.Revision != stored.Revision || !equalJSON(sent.Data.Raw, stored.Data.Raw) {
			all = append(all, "changes its data")
		}
	}
	if len(all) == 0 {
		return nil
	}
	return altered{"admission " + strings.Join(all, ", ")}
}

func differsInData(sent, stored *corev1.ConfigMap) (all []string) {
	for key, value := range stored.Data {
		if want, is := sent.Data[key]; !is {
			all = append(all, "adds the key "+key)
		} else if value != want {
			all = append(all, "changes the key "+key)
		}
	}
	for key := range stored.BinaryData {
		all = append(all, "adds the key "+key)
	}
	for key := range sent.Data {
		if _, is := stored.Data[key]; !is {
			all = append(all, "takes the key "+key+" away")
		}
	}
	slices.Sort(all)
	if stored.Immutable == nil || !*stored.Immutable {
		all = append(all, "makes it mutable")
	}
	return all
}

func equalJSON(a, b []byte) bool {
	var one, other any
	return json.Unmarshal(a, &one) == nil && json.Unmarshal(b, &other) == nil && reflect.DeepEqual(one, other)
}

// delete deletes exactly this version of an object.
func (m *maker) delete(ctx context.Context, object client.Object) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	uid, version := object.GetUID(), object.GetResourceVersion()
	err := m.writer.Delete(ctx, object, client.Preconditions{UID: &uid, ResourceVersion: &version})
	return client.IgnoreNotFound(err)
}
