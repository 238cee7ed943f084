package disk

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"testing"
)

const blocks = 64

func newDisk(t *testing.T) *Disk {
	t.Helper()
	d, err := New(bytes.NewReader(bytes.Repeat([]byte{'b'}, blocks*BlockSize/2)), blocks*BlockSize)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func fill(t *testing.T, to io.WriterAt, number int, letter byte) {
	t.Helper()
	if _, err := to.WriteAt(bytes.Repeat([]byte{letter}, BlockSize), int64(number)*BlockSize); err != nil {
		t.Fatal(err)
	}
}

// letter is what a block is full of.
func letter(t *testing.T, from io.ReaderAt, number int) byte {
	t.Helper()
	content := make([]byte, BlockSize)
	if _, err := from.ReadAt(content, int64(number)*BlockSize); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(content, bytes.Repeat(content[:1], BlockSize)) {
		t.Fatalf("block %d is torn", number)
	}
	return content[0]
}

func TestWhatIsRead(t *testing.T) {
	d := newDisk(t)
	if letter(t, d, 0) != 'b' || letter(t, d, blocks-1) != 0 {
		t.Error("neither the base nor, behind its end, zeros")
	}
	fill(t, d, 3, 'x')
	if letter(t, d, 3) != 'x' {
		t.Error("what was written is not read")
	}
	if _, err := d.WriteAt([]byte("over two"), 5*BlockSize-4); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 12)
	if _, err := d.ReadAt(got, 5*BlockSize-6); err != nil || string(got) != "bbover twobb" {
		t.Errorf("%q %v", got, err)
	}
	for _, offset := range []int64{-1, blocks*BlockSize - 1} {
		if _, err := d.ReadAt(make([]byte, 2), offset); err == nil {
			t.Errorf("read at %d", offset)
		}
		if _, err := d.WriteAt(make([]byte, 2), offset); err == nil {
			t.Errorf("written at %d", offset)
		}
	}
	if _, err := New(nil, BlockSize+1); err == nil {
		t.Error("a disk of a broken number of blocks")
	}
}

// What was flushed is there after any cut; of the rest, anything may be, also the later without the earlier.
func TestCut(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(50) {
		d := newDisk(t)
		fill(t, d, 1, 'f')
		if err := d.Flush(); err != nil {
			t.Fatal(err)
		}
		fill(t, d, 1, 'g')
		fill(t, d, 2, 'h')
		d.Cut(rand.New(rand.NewPCG(seed, 0)), 0.5)
		seen[string([]byte{letter(t, d, 1), letter(t, d, 2)})] = true
		d.Cut(rand.New(rand.NewPCG(seed, 0)), 1)
		if counts := d.Counts(); counts.Writes != 3 || counts.Flushes != 1 || counts.Cached != 2 {
			t.Fatalf("%+v", counts)
		}
	}
	for _, after := range []string{"fb", "fh", "gb", "gh"} {
		if !seen[after] {
			t.Errorf("never %s", after)
		}
		delete(seen, after)
	}
	if len(seen) > 0 {
		t.Errorf("also %v", seen)
	}
}

func TestAllOrNothing(t *testing.T) {
	for share, want := range map[float64]byte{0: 'x', 1: 'b'} {
		d := newDisk(t)
		fill(t, d, 1, 'x')
		d.Cut(rand.New(rand.NewPCG(1, 1)), share)
		if got := letter(t, d, 1); got != want {
			t.Errorf("with a share of %v: %c", share, got)
		}
	}
}

func TestALie(t *testing.T) {
	d := newDisk(t)
	d.Lie()
	fill(t, d, 1, 'x')
	if err := d.Flush(); err != nil {
		t.Fatal(err)
	}
	d.Cut(rand.New(rand.NewPCG(1, 1)), 1)
	if letter(t, d, 1) != 'b' {
		t.Error("it has flushed")
	}
}

// From a certain write or flush on nothing is done any more, until the machine has its power back.
func TestLosePowerAt(t *testing.T) {
	d := newDisk(t)
	lost := d.LosePowerAt(3)
	fill(t, d, 1, 'x')
	if err := d.Flush(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-lost:
		t.Fatal("lost after two requests")
	default:
	}
	if _, err := d.WriteAt(make([]byte, 1), BlockSize); err == nil || !d.dead() {
		t.Error("the third was done")
	}
	<-lost
	if err := d.Flush(); err == nil {
		t.Error("a fourth was done")
	}
	d.Cut(rand.New(rand.NewPCG(1, 1)), 1)
	if letter(t, d, 1) != 'x' || d.dead() {
		t.Error("what was flushed before is gone, or the power is still lost")
	}
	fill(t, d, 1, 'y')
	if counts := d.Counts(); counts.Writes != 2 || counts.Flushes != 1 {
		t.Errorf("%+v", counts)
	}
}

func TestClone(t *testing.T) {
	d := newDisk(t)
	fill(t, d, 1, 'x')
	clone := d.Clone()
	fill(t, d, 1, 'y')
	fill(t, clone, 2, 'z')
	clone.Cut(rand.New(rand.NewPCG(1, 1)), 1)
	if letter(t, clone, 1) != 'x' || letter(t, clone, 2) != 'b' || letter(t, d, 1) != 'y' || letter(t, d, 2) != 'b' {
		t.Error("they are not apart")
	}
}

// The protocol, by its bytes, as the description has them.
func TestServe(t *testing.T) {
	listener, err := net.Listen("unix", t.TempDir()+"/socket")
	if err != nil {
		t.Fatal(err)
	}
	d := newDisk(t)
	served := make(chan error, 1)
	go func() { served <- d.Serve(listener) }()
	connection, err := net.Dial("unix", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	say := func(words ...any) {
		t.Helper()
		for _, word := range words {
			if err := binary.Write(connection, binary.BigEndian, word); err != nil {
				t.Fatal(err)
			}
		}
	}
	hear := func(words ...any) {
		t.Helper()
		for _, word := range words {
			want, err := binary.Append(nil, binary.BigEndian, word)
			if err != nil {
				t.Fatal(err)
			}
			got := make([]byte, len(want))
			if _, err := io.ReadFull(connection, got); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%x, want %x: %v", got, want, err)
			}
		}
	}
	hear([]byte("NBDMAGICIHAVEOPT"), uint16(3))
	say(uint32(3))
	say([]byte("IHAVEOPT"), uint32(8), uint32(0)) // structured replies
	hear(uint64(0x3e889045565a9), uint32(8), uint32(1<<31|1), uint32(0))
	say([]byte("IHAVEOPT"), uint32(7), uint32(6), make([]byte, 6)) // go
	hear(uint64(0x3e889045565a9), uint32(7), uint32(3), uint32(12), uint16(0), uint64(blocks*BlockSize), uint16(1|4|8))
	hear(uint64(0x3e889045565a9), uint32(7), uint32(1), uint32(0))

	request := func(flags, command uint16, handle, offset uint64, length uint32) {
		say(uint32(0x25609513), flags, command, handle, offset, length)
	}
	request(0, 1, 70, 8, 5)
	say([]byte("hello"))
	hear(uint32(0x67446698), uint32(0), uint64(70))
	request(0, 0, 71, 6, 9)
	hear(uint32(0x67446698), uint32(0), uint64(71), []byte("bbhellobb"))
	request(0, 3, 72, 0, 0)
	hear(uint32(0x67446698), uint32(0), uint64(72))
	request(1, 1, 73, 0, 1)
	say([]byte("!"))
	hear(uint32(0x67446698), uint32(0), uint64(73))
	if counts := d.Counts(); counts.Flushes != 2 {
		t.Errorf("%+v: one was asked for, and one came with a write", counts)
	}
	request(0, 0, 74, blocks*BlockSize, 1)
	hear(uint32(0x67446698), uint32(5), uint64(74))
	request(0, 2, 75, 0, 0)
	if _, err := connection.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("after the end: %v", err)
	}
	connection.Close()

	// A machine whose disk has lost its power hears nothing, not even of a failure.
	if connection, err = net.Dial("unix", listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	lost := d.LosePowerAt(1)
	hear([]byte("NBDMAGICIHAVEOPT"), uint16(3))
	say(uint32(3), []byte("IHAVEOPT"), uint32(7), uint32(0))
	hear(uint64(0x3e889045565a9), uint32(7), uint32(3), uint32(12), uint16(0), uint64(blocks*BlockSize), uint16(1|4|8))
	hear(uint64(0x3e889045565a9), uint32(7), uint32(1), uint32(0))
	request(0, 3, 76, 0, 0)
	<-lost
	request(0, 0, 77, 0, 1)
	if err := connection.(*net.UnixConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if said, err := io.ReadAll(connection); err != nil || len(said) > 0 {
		t.Errorf("a dead disk says %x: %v", said, err)
	}
	connection.Close()
	listener.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
