//go:build machine

package machine

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
)

var errRebooted = errors.New("the machine has ended or begun anew meanwhile")

// A client asks the agent inside a machine, for as long as its QEMU lives.
type client struct {
	connection net.Conn
	paused     chan struct{} // closed when the machine may be snapshotted
	booted     chan struct{} // closed when it has said its first boot id

	mutex   sync.Mutex // guards what follows
	boot    string     // the newest boot id that the agent said; "" before the first
	last    int
	waiting map[int]chan answered
	over    bool
}

type answered struct {
	ID     int
	Boot   string
	Paused bool
	Code   int
	Output []byte
}

func newClient(connection net.Conn) *client {
	c := &client{connection: connection, paused: make(chan struct{}), booted: make(chan struct{}), waiting: map[int]chan answered{}}
	go c.listen() // ends with the connection
	return c
}

func (c *client) listen() {
	for reader := bufio.NewReader(c.connection); ; {
		line, err := reader.ReadBytes('\n')
		var said answered
		c.mutex.Lock()
		switch {
		case err != nil:
			c.over = true
			c.forget()
			c.mutex.Unlock()
			return
		case json.Unmarshal(line, &said) != nil: // what a boot did not end
		case said.Paused:
			close(c.paused)
		case said.Boot != "":
			if c.boot == "" {
				close(c.booted)
			}
			c.boot = said.Boot
			c.forget()
		case c.waiting[said.ID] != nil:
			c.waiting[said.ID] <- said
			delete(c.waiting, said.ID)
		}
		c.mutex.Unlock()
	}
}

// forget ends all that waits for an answer, which comes no more.
func (c *client) forget() {
	for _, waiting := range c.waiting {
		close(waiting)
	}
	clear(c.waiting)
}

func (c *client) bootID() string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.boot
}

// run runs a line of shell with some input, and gives what it said on both outputs.
func (c *client) run(line, input string) (string, error) {
	output, err := c.raw(line, input)
	return strings.TrimSpace(string(output)), err
}

// raw is run, and gives every byte.
func (c *client) raw(line, input string) ([]byte, error) {
	asked, answer, err := c.enter(line, input)
	if err != nil {
		return nil, err
	}
	if _, err := c.connection.Write(append(asked, '\n')); err != nil {
		return nil, errors.Join(errRebooted, err)
	}
	said, is := <-answer
	if !is {
		return nil, errRebooted
	}
	if said.Code != 0 {
		return said.Output, fmt.Errorf("exit code %d: %s", said.Code, said.Output)
	}
	return said.Output, nil
}

func (c *client) enter(line, input string) (asked []byte, answer chan answered, err error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.over || c.boot == "" {
		return nil, nil, errRebooted
	}
	c.last++
	answer = make(chan answered, 1)
	asked, err = json.Marshal(map[string]any{"id": c.last, "command": line, "input": input})
	if err == nil {
		c.waiting[c.last] = answer
	}
	return asked, answer, err
}
