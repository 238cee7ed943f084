// Package disk is a machine's disk that can lose its power: it keeps in memory what is written, tells what was flushed from what was not,
// and at a cut forgets part of the latter. QEMU reaches it by the protocol of network block devices.
package disk

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"sync"
)

// BlockSize is what is written as a whole or not at all, as by the disks of today. The file systems of machines have blocks of this size.
const BlockSize = 4096

type block = *[BlockSize]byte // never changed once it is in a map

// A Disk is a base that nothing writes to, and above it what was written. Its methods may be called from several goroutines.
type Disk struct {
	base io.ReaderAt
	size int64

	mutex  sync.Mutex // guards what follows
	seen   map[int64]block
	stable map[int64]block
	cached []write // since the last flush, in their order
	lies   bool
	left   int           // writes and flushes until the power is lost, where ends is not nil
	ends   chan struct{} // closed when it is
	counts Counts
}

var errDead = errors.New("the disk has lost its power")

type write struct {
	number int64
	block  block
}

// Counts are what a disk was asked, and what it forgot, since it was made.
type Counts struct{ Writes, Flushes, Cached, Forgotten int }

// New gives a disk of so many bytes, a multiple of BlockSize. The base may be shorter: the rest is zeros.
func New(base io.ReaderAt, size int64) (*Disk, error) {
	if size <= 0 || size%BlockSize != 0 {
		return nil, fmt.Errorf("a disk of %d bytes: give a multiple of %d", size, BlockSize)
	}
	return &Disk{base: base, size: size, seen: map[int64]block{}, stable: map[int64]block{}}, nil
}

// Clone gives another disk with the same content, all of it flushed.
func (d *Disk) Clone() *Disk {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return &Disk{base: d.base, size: d.size, seen: maps.Clone(d.seen), stable: maps.Clone(d.seen)}
}

// Lie makes the disk one that says that it has flushed and has not: a test that passes on it sees nothing.
func (d *Disk) Lie() {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.lies = true
}

// LosePowerAt makes the disk dead from that many writes and flushes on: it does not do them and answers nothing any more. It is Cut that
// brings it back. The channel is closed when the disk is dead.
func (d *Disk) LosePowerAt(requests int) <-chan struct{} {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.left, d.ends = requests, make(chan struct{})
	return d.ends
}

// dead tells whether the power is lost by now.
func (d *Disk) dead() bool {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return d.ends != nil && d.left <= 0
}

// spend counts a write or a flush, and tells whether there is power for it.
func (d *Disk) spend() bool {
	if d.ends == nil {
		return true
	}
	if d.left--; d.left == 0 {
		close(d.ends)
	}
	return d.left > 0
}

// Cut is what a loss of power leaves: all that was flushed, and of each block written since, by chance, what was written or not, so
// that a later write may be there and an earlier one not. share is how likely it is that a write was forgotten.
func (d *Disk) Cut(chance *rand.Rand, share float64) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	for _, w := range d.cached {
		d.counts.Cached++
		if chance.Float64() < share {
			d.counts.Forgotten++
			continue
		}
		d.stable[w.number] = w.block
	}
	d.cached, d.ends = nil, nil
	d.seen = maps.Clone(d.stable)
}

// Counts tells what happened so far.
func (d *Disk) Counts() Counts {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return d.counts
}

// ReadAt reads what was written, flushed or not.
func (d *Disk) ReadAt(to []byte, offset int64) (int, error) {
	if offset < 0 || offset+int64(len(to)) > d.size {
		return 0, fmt.Errorf("reading %d bytes at %d of a disk of %d", len(to), offset, d.size)
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	for n := 0; n < len(to); {
		number, within := (offset+int64(n))/BlockSize, (offset+int64(n))%BlockSize
		content, err := d.read(number)
		if err != nil {
			return n, err
		}
		n += copy(to[n:], content[within:])
	}
	return len(to), nil
}

func (d *Disk) read(number int64) (block, error) {
	if content := d.seen[number]; content != nil {
		return content, nil
	}
	content := new([BlockSize]byte)
	if _, err := d.base.ReadAt(content[:], number*BlockSize); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return content, nil
}

// WriteAt writes into the disk's cache.
func (d *Disk) WriteAt(from []byte, offset int64) (int, error) {
	if offset < 0 || offset+int64(len(from)) > d.size {
		return 0, fmt.Errorf("writing %d bytes at %d of a disk of %d", len(from), offset, d.size)
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if !d.spend() {
		return 0, errDead
	}
	d.counts.Writes++
	for n := 0; n < len(from); {
		number, within := (offset+int64(n))/BlockSize, (offset+int64(n))%BlockSize
		content := new([BlockSize]byte)
		if within != 0 || len(from)-n < BlockSize {
			before, err := d.read(number)
			if err != nil {
				return n, err
			}
			*content = *before
		}
		n += copy(content[within:], from[n:])
		d.seen[number] = content
		d.cached = append(d.cached, write{number, content})
	}
	return len(from), nil
}

// Flush makes everything written before it survive a cut.
func (d *Disk) Flush() error {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if !d.spend() {
		return errDead
	}
	d.counts.Flushes++
	if d.lies {
		return nil
	}
	for _, w := range d.cached {
		d.stable[w.number] = w.block
	}
	d.cached = nil
	return nil
}
