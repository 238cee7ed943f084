// Package sample has one mutant of each fate.
package sample

const limit = 3

var names = map[int]string{1: "one", 2: "two"}

type counter struct{ sum, seen int }

// add has parameters without a name, and variadic ones.
func (c *counter) add(_ string, by ...int) bool {
	for _, n := range by {
		c.sum, c.seen = c.sum+n, c.seen+1
	}
	return c.sum > limit
}

func (counter) name(n int) string { return names[n] }

func first[T comparable](list []T, is T) int {
	var none int
	for i, x := range list {
		if x == is {
			return i
		}
		none--
	}
	return min(none, -1)
}

func forever(n int) int {
	for n < 10 {
		n += 5
	}
	return n
}

func untested() int { return 7 }

func unused(v any) string {
	n, isNumber := v.(int)
	if !isNumber {
		return "?"
	}
	return counter{}.name(n)
}
