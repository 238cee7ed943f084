package forecast

import (
	"fmt"
	"slices"
	"testing"
)

// seconds makes so many pods of different sizes in each of some seconds.
func seconds(t *testing.T, counts ...int) (order []*candidate) {
	t.Helper()
	node := nodeWith(t, configuration())
	for second, count := range counts {
		for i := range count {
			pod := aPod(fmt.Sprintf("%d-%d", second, i), second, asks("memory", fmt.Sprint(i+1)))
			order = append(order, newCandidate(node, &pod))
		}
	}
	return order
}

// Of pods of one second each comes first once and last once, beside all that may be in other seconds, unless these are too many; none changes its
// second.
func TestOrdersThatAreTried(t *testing.T) {
	for name, row := range map[string]struct {
		counts []int
		firsts int // how many different pods, or pairs and triples of pods, come first in their seconds; as many come last
		orders int
	}{
		"no ties":                    {[]int{1, 1, 1}, 0, 0},
		"one second":                 {[]int{3, 1}, 3, 6},
		"two seconds":                {[]int{1, 3, 2}, 6, 12},
		"as many as are tried":       {[]int{4, 6}, 24, 48},
		"too many beside each other": {[]int{5, 5}, 5, 10},
		"three seconds":              {[]int{2, 3, 4}, 24, 48},
		"many of one second":         {[]int{30}, 25, 48},
	} {
		order := seconds(t, row.counts...)
		tried := otherOrders(order, ties(order))
		if row.firsts == 0 && tried == nil {
			continue
		}
		firsts, lasts := map[string]bool{}, map[string]bool{}
		for _, other := range tried {
			if len(other) != len(order) {
				t.Fatalf("%s: %d of %d pods", name, len(other), len(order))
			}
			first, last, at := "", "", 0
			for second, count := range row.counts {
				part := other[at : at+count]
				at += count
				for _, c := range part {
					if c.created() != order[at-1].created() {
						t.Errorf("%s: %s comes in second %d", name, c.pod.Name, second)
					}
				}
				if !slices.ContainsFunc(part, func(c *candidate) bool { return c == order[at-1] }) {
					t.Errorf("%s: %s is missing", name, order[at-1].pod.Name)
				}
				first, last = first+" "+part[0].pod.Name, last+" "+part[count-1].pod.Name
			}
			firsts[first], lasts[last] = true, true
		}
		if len(firsts) != row.firsts || len(lasts) != row.firsts || len(tried) != row.orders {
			t.Errorf("%s: %d come first and %d last in %d orders, want %d and %d", name, len(firsts), len(lasts), len(tried), row.firsts, row.orders)
		}
	}
}
