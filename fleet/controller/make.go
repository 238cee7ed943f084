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

// remadeEvery is how often an object is deleted to be made again at most: nodes may read it.
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

// remadeLately says whether a name has to wait before its object may be deleted again.
func (m *maker) remadeLately(name string, now time.Duration) bool {
	maps.DeleteFunc(m.remade, func(_ string, at time.Duration) bool { return now-at >= remadeEvery })
	_, lately := m.remade[name]
	return lately
}

// making is an object that is to be there.
type making struct {
	wanted client.Object
	// there is what the API server has by that name, and same compares it with what is wanted.
	there client.Object
	same  func() bool
	// altered: admission has changed it when it was tried last.
	altered bool
}

// make makes an object, and gives it as it was stored. One of ours by the same name that is not the same is deleted first. One that somebody else
// has made stays, and is in the way. Both objects have the same name, which is the hash of their content, so the new one cannot come first: a dry
// run under another name does, and if that is not taken, the old one stays.
func (m *maker) make(ctx context.Context, o making) (client.Object, error) {
	name := o.wanted.GetName()
	if o.altered { // what is not stored does not have to be deleted again
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
		return o.there, nil // made before, and the answer was lost
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

// rehearse asks whether an object would be stored as it is. A webhook that no dry run may ask is not asked.
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

// otherName is one that nothing has, and that policies take for the same.
func otherName(name string) string {
	cut := strings.LastIndexByte(name, '-') + 1
	hash := []byte(name[cut:])
	slices.Reverse(hash)
	return name[:cut] + string(hash)
}

// create makes an object, and takes away what was stored if it is not what was sent: no node names it yet, and what is read under a name that is a
// hash has to have it.
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

// differs says what admission has changed of an object that was sent. More labels and annotations are harmless.
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

// delete deletes exactly the version that was looked at.
func (m *maker) delete(ctx context.Context, object client.Object) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	uid, version := object.GetUID(), object.GetResourceVersion()
	err := m.writer.Delete(ctx, object, client.Preconditions{UID: &uid, ResourceVersion: &version})
	return client.IgnoreNotFound(err)
}
