package controller

import (
	"context"
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// paged is an API server that gives its list by pages.
type paged struct {
	client.Reader
	names []string
	asked []string // how it was continued
}

func (p *paged) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(options)
	p.asked = append(p.asked, o.Continue)
	begin := 0
	_, _ = fmt.Sscan(o.Continue, &begin)
	end := min(begin+int(o.Limit), len(p.names))
	into := list.(*metav1.PartialObjectMetadataList)
	for _, name := range p.names[begin:end] {
		into.Items = append(into.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid of " + name), ResourceVersion: "7"}})
	}
	into.ResourceVersion = "9"
	if end < len(p.names) {
		into.Continue = fmt.Sprint(end)
	}
	return nil
}

// A live list comes by pages, to its end.
func TestALiveListComesByPages(t *testing.T) {
	api := &paged{}
	for i := range 2*pageSize + 1 {
		api.names = append(api.names, fmt.Sprintf("n%d", i))
	}
	c := caches{live: api}
	all, at, err := c.listLive(t.Context(), nodeKind)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, o := range all {
		names = append(names, o.name)
	}
	if !slices.Equal(names, api.names) || at != "9" || all[0] != (listed{"uid of n0", "n0", "7"}) {
		t.Errorf("it has %d objects at %s, the first %v", len(all), at, all[0])
	}
	if !slices.Equal(api.asked, []string{"", "500", "1000"}) {
		t.Errorf("it was continued at %q", api.asked)
	}
}
