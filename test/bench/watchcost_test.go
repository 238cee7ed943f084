//go:build linux

package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

// A watch's first event is the Node as it is, and what is cut off at its end is none.
func TestEventsOfAWatchAreCounted(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	begun := "{\"type\":\"ADDED\"}\n"
	cost, err := readEvents(ctx, io.MultiReader(strings.NewReader(begun+"12345\n1234567\nhalf"), ends(stop)))
	if err != nil || cost != (watchCost{events: 2, bytes: 14}) {
		t.Errorf("%+v, %v; expected were 2 events of 14 bytes", cost, err)
	}
	if _, err := readEvents(t.Context(), strings.NewReader(begun)); !errors.Is(err, io.EOF) {
		t.Errorf("a watch that ends too early: %v", err)
	}
}

// ends is a reader at which the measurement is over.
type ends func()

func (e ends) Read([]byte) (int, error) {
	e()
	return 0, io.ErrUnexpectedEOF
}
