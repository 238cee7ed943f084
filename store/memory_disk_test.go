//go:build linux

package store

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

var errNoPower = errors.New("power cut")

// A memoryDisk is a disk whose power can be cut at any change. Of what was not synced at that time anything may be there or
// not be there: each name in a folder is that of the last sync or a newer one, independently of all others. That is worse than
// any real file system.
type memoryDisk struct {
	root *entry
	left int    // changes until one fails; below zero: none does
	off  bool   // all further changes fail
	cut  bool   // a failing change cuts the power, rather than being the only one to fail
	torn *entry // the file that was being written when the power was cut
}

// An entry is a file or, when names is not nil, a folder.
type entry struct {
	content []byte
	names   map[string]*entry // as running processes see it
	durable map[string]*entry // as it was at the last sync
}

func newMemoryDisk() *memoryDisk {
	d := &memoryDisk{root: newFolder(), left: -1}
	d.root.names["state"] = newFolder()
	d.root.durable = maps.Clone(d.root.names)
	return d
}

func newFolder() *entry { return &entry{names: map[string]*entry{}, durable: map[string]*entry{}} }

func (d *memoryDisk) store() *Store {
	return &Store{folders: folders{dir: "/state", disk: d, now: func() time.Time { return time.Unix(0, 0) }}}
}

// change counts a change and fails it if its time has come.
func (d *memoryDisk) change() error {
	if d.off {
		return errNoPower
	}
	d.left--
	if d.left == -1 {
		d.off = d.cut
		return errNoPower
	}
	return nil
}

// choices goes through all ways in which a number of questions can be answered, one way at a time.
type choices struct {
	answers []int
	options []int
	asked   int
}

// pick answers with a number below options.
func (c *choices) pick(options int) int {
	if c.asked == len(c.answers) {
		c.answers, c.options = append(c.answers, 0), append(c.options, options)
	}
	c.asked++
	return c.answers[c.asked-1]
}

// next turns to the next way; false when there is none.
func (c *choices) next() bool {
	c.asked = 0
	for last := len(c.answers) - 1; last >= 0; last-- {
		if c.answers[last]++; c.answers[last] < c.options[last] {
			c.answers, c.options = c.answers[:last+1], c.options[:last+1]
			return true
		}
	}
	return false
}

// restore brings the power back: what was not durable is as chosen.
func (d *memoryDisk) restore(choose func(options int) int) {
	if d.torn != nil {
		d.torn.content = d.torn.content[:len(d.torn.content)*choose(3)/2] // nothing, half or all of it
	}
	d.root.settle(choose)
	d.off, d.left, d.torn = false, -1, nil
}

func (e *entry) settle(choose func(options int) int) {
	for _, name := range slices.Sorted(maps.Keys(e.names)) {
		if e.names[name] != e.durable[name] && choose(2) == 0 {
			e.durable[name] = e.names[name]
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.durable)) {
		if e.names[name] == nil && choose(2) == 0 {
			delete(e.durable, name)
		}
	}
	e.names = maps.Clone(e.durable)
	for _, name := range slices.Sorted(maps.Keys(e.names)) {
		if e.names[name].names != nil {
			e.names[name].settle(choose)
		}
	}
}

// walk visits everything by its path.
func (e *entry) walk(path string, visit func(path string, e *entry)) {
	visit(path, e)
	for _, name := range slices.Sorted(maps.Keys(e.names)) {
		e.names[name].walk(filepath.Join(path, name), visit)
	}
}

func (d *memoryDisk) find(path string) *entry {
	found := d.root
	for name := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		if name != "" && found != nil {
			found = found.names[name]
		}
	}
	return found
}

func (d *memoryDisk) checkFolder(path string) error {
	switch found := d.find(path); {
	case found == nil:
		return fs.ErrNotExist
	case found.names == nil:
		return &defect{path, errors.New("is a file instead of a folder")}
	}
	return nil
}

func (d *memoryDisk) list(folder string) ([]fs.DirEntry, error) {
	found := d.find(folder)
	if found == nil {
		return nil, fs.ErrNotExist
	}
	var entries []fs.DirEntry
	for _, name := range slices.Sorted(maps.Keys(found.names)) {
		entries = append(entries, memoryEntry{name, found.names[name]})
	}
	return entries, nil
}

func (d *memoryDisk) read(path string, limit int) ([]byte, error) {
	switch found := d.find(path); {
	case found == nil:
		return nil, fs.ErrNotExist
	case found.names != nil:
		return nil, &defect{path, errors.New("is a folder instead of a file")}
	default:
		return found.content, nil
	}
}

func (d *memoryDisk) create(path string, content []byte) error {
	err := d.change()
	file := &entry{content: slices.Clone(content)}
	if err != nil && d.cut {
		d.torn = file
	} else if err != nil {
		file.content = file.content[:len(content)/2]
	}
	return errors.Join(err, d.add(path, file))
}

func (d *memoryDisk) mkdir(path string) error {
	if err := d.change(); err != nil {
		return err
	}
	return d.add(path, newFolder())
}

func (d *memoryDisk) add(path string, added *entry) error {
	parent := d.find(filepath.Dir(path))
	if parent == nil {
		return fs.ErrNotExist
	}
	if parent.names[filepath.Base(path)] != nil {
		return fs.ErrExist
	}
	parent.names[filepath.Base(path)] = added
	return nil
}

func (d *memoryDisk) rename(from, to string) error {
	if err := d.change(); err != nil {
		return err
	}
	moved, target := d.find(from), d.find(to)
	switch {
	case moved == nil:
		return fs.ErrNotExist
	case target != nil && (target.names == nil) != (moved.names == nil), target != nil && len(target.names) > 0:
		return fs.ErrExist
	}
	delete(d.find(filepath.Dir(from)).names, filepath.Base(from))
	d.find(filepath.Dir(to)).names[filepath.Base(to)] = moved
	return nil
}

// remove takes one change for each name, as a real one would; a failure leaves the rest.
func (d *memoryDisk) remove(path string) error {
	found := d.find(path)
	if found == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(found.names)) {
		if err := d.remove(filepath.Join(path, name)); err != nil {
			return err
		}
	}
	if err := d.change(); err != nil {
		return err
	}
	delete(d.find(filepath.Dir(path)).names, filepath.Base(path))
	return nil
}

func (d *memoryDisk) sync(folder string) error {
	if err := d.change(); err != nil {
		return err
	}
	found := d.find(folder)
	if found == nil {
		return fs.ErrNotExist
	}
	found.durable = maps.Clone(found.names)
	return nil
}

type memoryEntry struct {
	name  string
	entry *entry
}

func (e memoryEntry) Name() string               { return e.name }
func (e memoryEntry) IsDir() bool                { return e.entry.names != nil }
func (e memoryEntry) Type() fs.FileMode          { return 0 }
func (e memoryEntry) Info() (fs.FileInfo, error) { return nil, errors.ErrUnsupported }

// String is the whole disk in words: equal disks have equal ones.
func (d *memoryDisk) String() string {
	var words strings.Builder
	d.root.walk("/", func(path string, e *entry) { fmt.Fprintf(&words, "%s %t %q\n", path, e.names != nil, e.content) })
	return words.String()
}

// copy copies a disk on which everything is durable.
func (d *memoryDisk) copy() *memoryDisk {
	c := *d
	c.root = d.root.copy()
	return &c
}

func (e *entry) copy() *entry {
	if e.names == nil {
		return &entry{content: slices.Clone(e.content)}
	}
	c := newFolder()
	for name, below := range e.names {
		c.names[name] = below.copy()
	}
	c.durable = maps.Clone(c.names)
	return c
}
