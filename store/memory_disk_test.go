package store

import (
	"errors"
	"io/fs"
	"maps"
	"math/rand/v2"
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
	left int  // changes until one fails; below zero: none does
	off  bool // all further changes fail
	cut  bool // a failing change cuts the power, rather than being the only one to fail
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
	return &Store{dir: "/state", disk: d, now: func() time.Time { return time.Unix(0, 0) }}
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

// restore brings the power back: what was not durable is settled by chance.
func (d *memoryDisk) restore(chance *rand.Rand) {
	d.root.settle(chance)
	d.off, d.left = false, -1
}

func (e *entry) settle(chance *rand.Rand) {
	for _, name := range slices.Sorted(maps.Keys(e.names)) {
		if e.names[name] != e.durable[name] && chance.IntN(2) == 0 {
			e.durable[name] = e.names[name]
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.durable)) {
		if e.names[name] == nil && chance.IntN(2) == 0 {
			delete(e.durable, name)
		}
	}
	e.names = maps.Clone(e.durable)
	for _, name := range slices.Sorted(maps.Keys(e.names)) {
		if e.names[name].names != nil {
			e.names[name].settle(chance)
		}
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
	if err != nil {
		content = content[:len(content)/2]
	}
	return errors.Join(err, d.add(path, &entry{content: slices.Clone(content)}))
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
