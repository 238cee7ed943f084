package disk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
)

// What is spoken is described in https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md: the "fixed newstyle" handshake, of
// its options those that QEMU wants, and simple replies.
const (
	helloMagic  = 0x4e42444d41474943 // "NBDMAGIC"
	optionMagic = 0x49484156454F5054 // "IHAVEOPT"
	answerMagic = 0x3e889045565a9
	askMagic    = 0x25609513
	replyMagic  = 0x67446698

	fixedNewstyle, noZeroes = 1, 2

	optionAbort, optionInfo, optionGo = 2, 6, 7

	answerAck, answerInfo, answerUnsupported = 1, 3, 1<<31 | 1

	infoExport = 0

	hasFlags, sendsFlush, sendsFUA = 1, 4, 8

	commandRead, commandWrite, commandDisconnect, commandFlush = 0, 1, 2, 3

	flagFUA = 1

	failedIO = 5

	requestLimit = 64 << 20 // bytes; QEMU asks for 32 MiB at most
)

// Serve answers the connections of machines, one at a time, until the listener is closed.
func (d *Disk) Serve(listener net.Listener) error {
	for {
		connection, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		err = d.speak(connection)
		_ = connection.Close()
		var lost *net.OpError // the machine's end, in the middle of whatever
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.As(err, &lost) {
			return fmt.Errorf("serving a disk: %w", err)
		}
	}
}

func (d *Disk) speak(connection io.ReadWriter) error {
	if goes, err := d.shakeHands(connection); err != nil || !goes {
		return err
	}
	for {
		var ask struct {
			Magic   uint32
			Flags   uint16
			Command uint16
			Handle  uint64
			Offset  uint64
			Length  uint32
		}
		if err := binary.Read(connection, binary.BigEndian, &ask); err != nil {
			return err
		}
		if ask.Magic != askMagic || ask.Length > requestLimit {
			return fmt.Errorf("a request with magic %x for %d bytes", ask.Magic, ask.Length)
		}
		var content []byte
		var failed error
		switch ask.Command {
		case commandRead:
			content = make([]byte, ask.Length)
			_, failed = d.ReadAt(content, int64(ask.Offset))
		case commandWrite:
			written := make([]byte, ask.Length)
			if _, err := io.ReadFull(connection, written); err != nil {
				return err
			}
			if _, failed = d.WriteAt(written, int64(ask.Offset)); failed == nil && ask.Flags&flagFUA != 0 {
				failed = d.Flush()
			}
		case commandFlush:
			failed = d.Flush()
		case commandDisconnect:
			return nil
		default:
			return fmt.Errorf("a request of kind %d", ask.Command)
		}
		if d.dead() { // no answer, and no error either, until the machine has gone
			_, err := io.Copy(io.Discard, connection)
			return err
		}
		reply := make([]byte, 16, 16+len(content))
		binary.BigEndian.PutUint32(reply, replyMagic)
		binary.BigEndian.PutUint64(reply[8:], ask.Handle)
		if failed != nil {
			binary.BigEndian.PutUint32(reply[4:], failedIO)
			content = nil
		}
		if _, err := connection.Write(append(reply, content...)); err != nil {
			return err
		}
	}
}

// shakeHands returns when the client wants to go on to its requests, or, with false, to end.
func (d *Disk) shakeHands(connection io.ReadWriter) (goes bool, err error) {
	hello := binary.BigEndian.AppendUint64(nil, helloMagic)
	hello = binary.BigEndian.AppendUint64(hello, optionMagic)
	hello = binary.BigEndian.AppendUint16(hello, fixedNewstyle|noZeroes)
	if _, err := connection.Write(hello); err != nil {
		return false, err
	}
	var clientFlags uint32
	if err := binary.Read(connection, binary.BigEndian, &clientFlags); err != nil {
		return false, err
	}
	for {
		var option struct {
			Magic  uint64
			Option uint32
			Length uint32
		}
		if err := binary.Read(connection, binary.BigEndian, &option); err != nil {
			return false, err
		}
		if option.Magic != optionMagic || option.Length > requestLimit {
			return false, fmt.Errorf("an option with magic %x of %d bytes", option.Magic, option.Length)
		}
		if _, err := io.CopyN(io.Discard, connection, int64(option.Length)); err != nil { // there is but one export
			return false, err
		}
		answer := func(kind uint32, data []byte) error {
			head := binary.BigEndian.AppendUint64(nil, answerMagic)
			for _, number := range []uint32{option.Option, kind, uint32(len(data))} {
				head = binary.BigEndian.AppendUint32(head, number)
			}
			_, err := connection.Write(append(head, data...))
			return err
		}
		switch option.Option {
		case optionInfo, optionGo:
			export := binary.BigEndian.AppendUint16(nil, infoExport)
			export = binary.BigEndian.AppendUint64(export, uint64(d.size))
			export = binary.BigEndian.AppendUint16(export, hasFlags|sendsFlush|sendsFUA)
			if err := errors.Join(answer(answerInfo, export), answer(answerAck, nil)); err != nil || option.Option == optionGo {
				return err == nil, err
			}
		case optionAbort:
			return false, answer(answerAck, nil)
		default:
			if err := answer(answerUnsupported, nil); err != nil {
				return false, err
			}
		}
	}
}
