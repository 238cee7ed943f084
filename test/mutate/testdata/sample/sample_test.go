package sample

import "testing"

func TestAdd(t *testing.T) {
	c := &counter{}
	if c.add("", 1, 1) || !c.add("", 2) || c.sum != 4 {
		t.Error(c)
	}
}

func TestFirst(t *testing.T) {
	if first([]int{5, 6}, 6) != 1 || first(nil, 6) != -1 || first([]int{5}, 6) != -1 {
		t.Error("first")
	}
}

func TestForever(t *testing.T) {
	if forever(7) != 12 {
		t.Error("forever")
	}
}

func TestUnused(t *testing.T) {
	if unused(1) != "one" || unused("x") != "?" {
		t.Error("unused")
	}
}
