package core

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

// The wall clock is for people alone: a life in which it jumps to and fro by years is the same life (rule 7). The soak jumps the real
// clock only where it is asked to, for it is everybody's.
func TestTheWallClockDecidesNothing(t *testing.T) {
	for seed := range lives(t, 25) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			steady, jumping := liveThrough(t, seed, 0), liveThrough(t, seed, 10*365*24*time.Hour)
			if !reflect.DeepEqual(steady.did, jumping.did) || !reflect.DeepEqual(steady.events, jumping.events) {
				t.Errorf("with a steady clock it did %q and told %q,\nwith one that jumps %q and %q", steady.did, steady.events, jumping.did, jumping.events)
			}
			for _, d := range []*drive{steady, jumping} {
				d.s.Wall, d.s.ApplyAtWall = time.Time{}, time.Time{}
				d.s.LastChange.Began, d.s.LastChange.Ended, d.s.Said.Since = time.Time{}, time.Time{}, time.Time{}
			}
			if !reflect.DeepEqual(steady.s, jumping.s) || !reflect.DeepEqual(steady.disk, jumping.disk) {
				t.Errorf("with a steady clock it came to\n%+v, with one that jumps to\n%+v", steady.s, jumping.s)
			}
		})
	}
}

// liveThrough lives the seed's life, the wall clock off by up to so much either way, otherwise each time.
func liveThrough(t *testing.T, seed uint64, off time.Duration) *drive {
	random, jumps := rand.New(rand.NewPCG(seed, 2)), rand.New(rand.NewPCG(seed, 3))
	d := newDrive(t, func(s *Settings) { s.EditSpread = time.Duration(random.IntN(2)) * time.Minute }).boot()
	for range 40 {
		if off > 0 {
			d.wallOff = time.Duration(jumps.Int64N(int64(2*off))) - off
		}
		d.live(random)
		d.checkRules()
	}
	return d
}
