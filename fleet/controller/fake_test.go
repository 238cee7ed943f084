package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

// objects are what somebody knows, by KIND/NAME.
type objects map[string]client.Object

// fakeAPI is an API server as far as a controller sees it. What it is asked for is written down as VERB KIND/NAME.
type fakeAPI struct {
	mutex    sync.Mutex
	version  int
	stored   objects
	requests []string
	// before may refuse a request, or have something happen before it.
	before func(request string) error
	// after may lose the answer.
	after func(request string) error
	// admit changes what is to be stored, as a mutating admission policy does.
	admit            func(object client.Object)
	inFlight, atMost int
	rights           bool
	patched          map[string]int     // how often each Node was
	created          map[types.UID]bool // by the controller
}

func newFakeAPI() *fakeAPI {
	return &fakeAPI{stored: objects{}, version: 100, rights: true, patched: map[string]int{}, created: map[types.UID]bool{}}
}

func kindOf(object any) string {
	if partial, is := object.(*metav1.PartialObjectMetadata); is {
		return partial.Kind
	}
	if partial, is := object.(*metav1.PartialObjectMetadataList); is {
		return strings.TrimSuffix(partial.Kind, "List")
	}
	return strings.TrimSuffix(reflect.TypeOf(object).Elem().Name(), "List")
}

func keyOf(object client.Object) string { return kindOf(object) + "/" + object.GetName() }

// put stores an object, as its next version.
func (a *fakeAPI) put(object client.Object) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.store(object)
}

func (a *fakeAPI) store(object client.Object) {
	a.version++
	object.SetResourceVersion(strconv.Itoa(a.version))
	if object.GetUID() == "" {
		object.SetUID(types.UID("uid-" + strconv.Itoa(a.version)))
	}
	a.stored[keyOf(object)] = object.DeepCopyObject().(client.Object)
}

func (a *fakeAPI) remove(key string) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.version++
	delete(a.stored, key)
}

// begin writes a request down, and gives its end.
func (a *fakeAPI) begin(request string) (end func() error, err error) {
	a.mutex.Lock()
	a.requests = append(a.requests, request)
	a.inFlight++
	a.atMost = max(a.atMost, a.inFlight)
	before, after := a.before, a.after
	a.mutex.Unlock()
	end = func() error {
		a.mutex.Lock()
		a.inFlight--
		a.mutex.Unlock()
		if after != nil {
			return after(request)
		}
		return nil
	}
	if before != nil {
		if err := before(request); err != nil {
			_ = end()
			return nil, err
		}
	}
	return end, nil
}

// asked are the requests that begin so.
func (a *fakeAPI) asked(prefix string) []string {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return slices.DeleteFunc(slices.Clone(a.requests), func(r string) bool { return !strings.HasPrefix(r, prefix) })
}

func resource(key string) schema.GroupResource {
	return schema.GroupResource{Resource: strings.ToLower(strings.Split(key, "/")[0]) + "s"}
}

func (a *fakeAPI) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	name := kindOf(object) + "/" + key.Name
	end, err := a.begin("get " + name)
	if err != nil {
		return err
	}
	defer func() { _ = end() }()
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.stored.get(name, object)
}

func (o objects) get(name string, into client.Object) error {
	stored, is := o[name]
	if !is {
		return apierrors.NewNotFound(resource(name), name)
	}
	copyInto(stored, into)
	return nil
}

func copyInto(from runtime.Object, into any) {
	text, err := json.Marshal(from)
	if err != nil {
		panic(err)
	}
	reflect.ValueOf(into).Elem().SetZero()
	if err := json.Unmarshal(text, into); err != nil {
		panic(err)
	}
}

func (a *fakeAPI) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	kind := kindOf(list)
	end, err := a.begin("list " + kind)
	if err != nil {
		return err
	}
	defer func() { _ = end() }()
	a.mutex.Lock()
	defer a.mutex.Unlock()
	list.SetResourceVersion(strconv.Itoa(a.version))
	return a.stored.list(kind, list, options...)
}

func (o objects) list(kind string, into client.ObjectList, options ...client.ListOption) error {
	var asked client.ListOptions
	asked.ApplyOptions(options)
	var found []runtime.Object
	for _, key := range slices.Sorted(maps.Keys(o)) {
		object := o[key]
		if kindOf(object) != kind || asked.LabelSelector != nil && !asked.LabelSelector.Matches(labels.Set(object.GetLabels())) {
			continue
		}
		if p, is := object.(*corev1.Pod); is && asked.FieldSelector != nil && !asked.FieldSelector.Matches(fields.Set{"spec.nodeName": p.Spec.NodeName}) {
			continue
		}
		if _, partial := into.(*metav1.PartialObjectMetadataList); partial {
			found = append(found, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: object.GetName(), UID: object.GetUID(),
				ResourceVersion: object.GetResourceVersion()}})
			continue
		}
		found = append(found, object.DeepCopyObject())
	}
	return meta.SetList(into, found)
}

func (a *fakeAPI) Create(_ context.Context, object client.Object, options ...client.CreateOption) error {
	if review, is := object.(*authorizationv1.SelfSubjectAccessReview); is {
		review.Status.Allowed = a.rights
		return nil
	}
	var asked client.CreateOptions
	asked.ApplyOptions(options)
	end, err := a.begin(dry(asked.DryRun) + "create " + keyOf(object))
	if err != nil {
		return err
	}
	a.mutex.Lock()
	if _, is := a.stored[keyOf(object)]; is {
		err = apierrors.NewAlreadyExists(resource(keyOf(object)), object.GetName())
	} else {
		a.change(object)
		if object.SetCreationTimestamp(metav1.Now()); asked.DryRun == nil {
			a.store(object)
			a.created[object.GetUID()] = true
		}
	}
	a.mutex.Unlock()
	if lost := end(); lost != nil {
		return lost
	}
	return err
}

// dry is how requests are written down of which nothing is stored.
func dry(run []string) string {
	if run == nil {
		return ""
	}
	return "dry-run "
}

func (a *fakeAPI) change(object client.Object) {
	if a.admit != nil {
		a.admit(object)
	}
}

func (a *fakeAPI) Delete(_ context.Context, object client.Object, options ...client.DeleteOption) error {
	var asked client.DeleteOptions
	asked.ApplyOptions(options)
	end, err := a.begin("delete " + keyOf(object))
	if err != nil {
		return err
	}
	defer func() { _ = end() }()
	a.mutex.Lock()
	defer a.mutex.Unlock()
	stored, is := a.stored[keyOf(object)]
	switch {
	case !is:
		return apierrors.NewNotFound(resource(keyOf(object)), object.GetName())
	case asked.Preconditions == nil || *asked.Preconditions.UID != stored.GetUID() || *asked.Preconditions.ResourceVersion != stored.GetResourceVersion():
		return apierrors.NewConflict(resource(keyOf(object)), object.GetName(), fmt.Errorf("precondition failed"))
	}
	if !isOurs(stored) && !a.created[stored.GetUID()] {
		panic("the controller deletes " + keyOf(object) + ", which it has not made")
	}
	a.version++
	delete(a.stored, keyOf(object))
	return nil
}

func (a *fakeAPI) Patch(_ context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	var asked client.PatchOptions
	asked.ApplyOptions(options)
	return a.patch(dry(asked.DryRun)+"patch ", object, patch)
}

func (a *fakeAPI) patch(verb string, object client.Object, patch client.Patch) error {
	body, err := patch.Data(object)
	if err != nil {
		return err
	}
	end, err := a.begin(verb + keyOf(object))
	if err != nil {
		return err
	}
	err = a.merge(object, body, strings.HasPrefix(verb, "dry-run"))
	if lost := end(); lost != nil {
		return lost
	}
	return err
}

// merge holds a patch to the uid and resourceVersion that it names, and it has to name them.
func (a *fakeAPI) merge(object client.Object, body []byte, dry bool) error {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	stored, is := a.stored[keyOf(object)]
	if !is {
		return apierrors.NewNotFound(resource(keyOf(object)), object.GetName())
	}
	var named struct{ Metadata metav1.ObjectMeta }
	if err := json.Unmarshal(body, &named); err != nil {
		return err
	}
	if named.Metadata.UID != "" && named.Metadata.UID != stored.GetUID() {
		return apierrors.NewInvalid(schema.GroupKind{Kind: kindOf(object)}, object.GetName(), nil)
	}
	if _, node := object.(*corev1.Node); node && named.Metadata.UID == "" {
		return apierrors.NewBadRequest("a PATCH of a Node names no uid")
	}
	if named.Metadata.ResourceVersion != stored.GetResourceVersion() {
		return apierrors.NewConflict(resource(keyOf(object)), object.GetName(), fmt.Errorf("it was changed"))
	}
	before, err := json.Marshal(stored)
	if err != nil {
		return err
	}
	merged, err := jsonpatch.MergePatch(before, body)
	if err != nil {
		return err
	}
	changed := reflect.New(reflect.TypeOf(stored).Elem()).Interface().(client.Object)
	if err := json.Unmarshal(merged, changed); err != nil {
		return err
	}
	if a.change(changed); dry {
		copyInto(changed, object)
		return nil
	}
	a.store(changed)
	if kindOf(object) == "Node" {
		a.patched[object.GetName()]++
	}
	copyInto(a.stored[keyOf(object)], object)
	return nil
}

func (a *fakeAPI) Status() client.SubResourceWriter { return fakeStatus{api: a} }

type fakeStatus struct {
	client.SubResourceWriter
	api *fakeAPI
}

func (s fakeStatus) Patch(_ context.Context, object client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	return s.api.patch("patch status of ", object, patch)
}

// SubResource knows evictions, of exactly the pod that is named.
func (a *fakeAPI) SubResource(name string) client.SubResourceClient {
	return fakeEvictions{api: a, name: name}
}

type fakeEvictions struct {
	client.SubResourceClient
	api  *fakeAPI
	name string
}

func (e fakeEvictions) Create(_ context.Context, object client.Object, eviction client.Object, _ ...client.SubResourceCreateOption) error {
	end, err := e.api.begin(e.name + " of " + keyOf(object))
	if err != nil {
		return err
	}
	e.api.mutex.Lock()
	stored, is := e.api.stored[keyOf(object)]
	switch {
	case !is:
		err = apierrors.NewNotFound(resource(keyOf(object)), object.GetName())
	case *eviction.(*policyv1.Eviction).DeleteOptions.Preconditions.UID != stored.GetUID():
		err = apierrors.NewConflict(resource(keyOf(object)), object.GetName(), fmt.Errorf("precondition failed"))
	default:
		e.api.version++
		delete(e.api.stored, keyOf(object))
	}
	e.api.mutex.Unlock()
	if lost := end(); lost != nil {
		return lost
	}
	return err
}

// fakeCache is what the API server held when it was last brought up to date. While it is frozen it stays.
type fakeCache struct {
	api    *fakeAPI
	known  objects
	frozen bool
	// reads is called before anything is read of a kind.
	reads func(kind string)
}

func (c *fakeCache) sync() {
	c.api.mutex.Lock()
	defer c.api.mutex.Unlock()
	if !c.frozen {
		c.known = maps.Clone(c.api.stored)
	}
}

func (c *fakeCache) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	return c.known.get(kindOf(object)+"/"+key.Name, object)
}

func (c *fakeCache) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	if c.reads != nil {
		c.reads(kindOf(list))
	}
	return c.known.list(kindOf(list), list, options...)
}
