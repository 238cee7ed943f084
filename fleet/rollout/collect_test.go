package rollout

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

// Only what nobody needs any more is collected: not the target, the stable revision, a pinned or a stopped one, nor what any Node names.
func TestCollect(t *testing.T) {
	tab := newTable(t) // revision 1 is stable, 2 is the target
	for i := range 5 { // 3 to 7, the last the target
		tab.pool.Spec.Layers = []v1alpha1.Layer{inline("fleet", fmt.Sprintf(`{"maxPods":%d}`, 300+i))}
		tab.adopt()
	}
	limit := int32(1)
	tab.pool.Spec.RevisionHistoryLimit, tab.pool.Spec.Rollout.Pin = &limit, pinned(4)
	tab.pool.Status.Stops = []v1alpha1.Stop{{Hash: tab.kept[2].Hash}}
	variant := func(i int) string {
		v, _ := newVariants(&tab.kept[i]).variantFor(nil)
		return strings.TrimSuffix(strings.TrimPrefix(v.source, Namespace+"/"), "/"+VariantKey)
	}
	var variants []string
	for i := range tab.kept {
		variants = append(variants, variant(i))
	}
	variants = append(variants, "pool-workers-0123456789", "pool-others-0123456789", "pool-workers-by-hand",
		"pool-workers-production", "pool-workers-5t67d5m954", "pool-workers-ABCDEF0123", // ten characters, by a person, by push, by nobody
		"pool-workers-1111111111", "pool-workers-2222222222") // a layer of another pool, and one of a revision that is kept
	tab.kept[0].Layers[0].From = Namespace + "/pool-workers-2222222222"
	world := tab.world
	other := newPool("others", func(p *v1alpha1.KubeletPool) {
		p.Spec.Layers = []v1alpha1.Layer{{Name: "fleet", ConfigMap: &v1alpha1.ConfigMapKey{Name: "pool-workers-1111111111"}}}
	})
	world.Pools = []Pool{ReadPool(tab.pool, tab.kept, time.LoadLocation), ReadPool(other, nil, time.LoadLocation)}
	world.Nodes = []Node{{Name: "n1", Active: sourceOf(variant(1))}, {Name: "n2", Labels: map[string]string{"pool": "a"}}}

	// 1 stable, 2 named by a Node, 3 stopped, 4 pinned, 7 the target; of 5 and 6 the newer one stays.
	revisions, gone := Collect(world, "workers", variants)
	if want := []string{tab.kept[4].ObjectName()}; !slices.Equal(revisions, want) {
		t.Errorf("revisions %v, want %v", revisions, want)
	}
	if want := []string{variant(4), "pool-workers-0123456789"}; !slices.Equal(gone, want) {
		t.Errorf("variants %v, want %v", gone, want)
	}

	world.Synced = false
	if revisions, gone := Collect(world, "workers", variants); revisions != nil || gone != nil {
		t.Errorf("with caches that are not synced: %v, %v", revisions, gone)
	}
	world.Synced = true
	if revisions, gone := Collect(world, "another", variants); revisions != nil || gone != nil {
		t.Errorf("of a pool that is not there: %v, %v", revisions, gone)
	}
}

// Of a pool that is gone nothing stays that nothing needs. Its revisions stay as long as a Node names a variant.
func TestCollectGone(t *testing.T) {
	revisions := []string{"gone-0000000001", "gone-0000000002", "gone-by-hand", "other-0000000001"}
	variants := []string{"pool-gone-000000000a", "pool-gone-000000000b", "pool-gone-000000000c", "pool-other-000000000a"}
	other := newPool("other", func(p *v1alpha1.KubeletPool) {
		p.Spec.Layers = []v1alpha1.Layer{{Name: "fleet", ConfigMap: &v1alpha1.ConfigMapKey{Name: "pool-gone-000000000b"}}}
	})
	world := World{Synced: true, Pools: []Pool{ReadPool(other, nil, time.LoadLocation)}, Nodes: []Node{{Name: "n1", Good: sourceOf("pool-gone-000000000a")}}}
	for what, row := range map[string]struct {
		change              func(w *World)
		revisions, variants []string
	}{
		"a Node names one":   {func(*World) {}, nil, variants[2:3]},
		"no Node names one":  {func(w *World) { w.Nodes = nil }, revisions[:2], []string{variants[0], variants[2]}},
		"it is there":        {func(w *World) { w.Pools = []Pool{{Name: "gone"}} }, nil, nil},
		"nobody knows so":    {func(w *World) { w.Synced = false }, nil, nil},
		"a Node assigns one": {func(w *World) { w.Nodes = []Node{{Source: sourceOf(variants[2])}} }, nil, variants[:1]},
	} {
		w := world
		row.change(&w)
		if r, v := CollectGone(w, "gone", revisions, variants); !slices.Equal(r, row.revisions) || !slices.Equal(v, row.variants) {
			t.Errorf("%s: %v, %v", what, r, v)
		}
	}
}
