//go:build machine

package machine

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"
)

// monitor speaks with QEMU by its machine protocol.
type monitor struct {
	connection net.Conn
	answers    chan qmpMessage
	events     chan qmpMessage // those that somebody may wait for
}

type qmpMessage struct {
	Return json.RawMessage
	Error  *struct{ Desc string }
	Event  string
}

// newMonitor takes the connection that QEMU made, and ends with it.
func newMonitor(connection net.Conn) (*monitor, error) {
	q := &monitor{connection: connection, answers: make(chan qmpMessage), events: make(chan qmpMessage, 100)}
	go func() {
		defer close(q.answers)
		for decoder := json.NewDecoder(connection); ; {
			var said qmpMessage
			if err := decoder.Decode(&said); err != nil {
				return
			}
			switch {
			case said.Event != "":
				select {
				case q.events <- said:
				default: // nobody waits for so many
				}
			case said.Return != nil || said.Error != nil:
				q.answers <- said
			}
		}
	}()
	return q, q.ask("qmp_capabilities")
}

func (q *monitor) ask(command string) error { return q.askFor(nil, command, nil) }

// askFor gives a command its arguments, and unmarshals its answer unless answer is nil.
func (q *monitor) askFor(answer any, command string, arguments map[string]any) error {
	said := map[string]any{"execute": command}
	if arguments != nil {
		said["arguments"] = arguments
	}
	if err := json.NewEncoder(q.connection).Encode(said); err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	heard, is := <-q.answers
	switch {
	case !is:
		return fmt.Errorf("%s: QEMU has gone", command)
	case heard.Error != nil:
		return fmt.Errorf("%s: %s", command, heard.Error.Desc)
	case answer != nil:
		return json.Unmarshal(heard.Return, answer)
	}
	return nil
}

// await waits for an event.
func (q *monitor) await(event string) error {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		select {
		case said := <-q.events:
			if said.Event == event {
				return nil
			}
		case <-deadline.C:
			return errors.New("QEMU did not say " + event)
		}
	}
}
