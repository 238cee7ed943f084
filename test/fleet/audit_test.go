//go:build e2e

package fleet

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// audit is what the API server's audit log has of PATCHes of Nodes. It is read on from where it ended.
type audit struct {
	mutex   sync.Mutex
	read    int64
	patches []request
}

// request is a PATCH of a Node: by the controller, or of its status by the node itself.
type request struct {
	node string
	at   time.Time // when it was received
	done time.Time // and answered
	code int
	own  bool
}

// since reads what has been noted since the last time, and gives all that there is.
func (a *audit) since(path string) ([]request, error) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if _, err := file.Seek(a.read, io.SeekStart); err != nil {
		return nil, err
	}
	for lines := bufio.NewReader(file); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return slices.Clone(a.patches), nil // what has no end is being written
		}
		if err != nil {
			return nil, err
		}
		a.read += int64(len(line))
		if !bytes.Contains(line, []byte(`"verb":"patch"`)) || !bytes.Contains(line, []byte(`"resource":"nodes"`)) {
			continue
		}
		a.take(line)
	}
}

// take leaves out a line that an API server was killed over.
func (a *audit) take(line []byte) {
	var e struct {
		Stage  string
		At     time.Time `json:"requestReceivedTimestamp"`
		Done   time.Time `json:"stageTimestamp"`
		User   struct{ Username string }
		Object struct{ Subresource, Name string } `json:"objectRef"`
		URI    string                             `json:"requestURI"`
		Answer struct{ Code int }                 `json:"responseStatus"`
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return
	}
	own := e.User.Username == "system:node:"+e.Object.Name && e.Object.Subresource == "status"
	if e.Stage == "ResponseComplete" && !strings.Contains(e.URI, "dryRun=All") && (own || e.User.Username == controllerUser) {
		a.patches = append(a.patches, request{e.Object.Name, e.At, e.Done, e.Answer.Code, own})
	}
}

// requests are those of the crew's Nodes, in their order.
func (c *crew) requests(own bool) (sent []request) {
	c.t.Helper()
	all, err := c.f.audit.since(c.f.AuditLog())
	if err != nil {
		c.t.Fatal(err)
	}
	sent = slices.DeleteFunc(all, func(r request) bool { return r.own != own || !c.owns(r.node, r.at) })
	slices.SortFunc(sent, func(a, b request) int { return a.at.Compare(b.at) })
	return sent
}

// attempts are the controller's PATCHes, all of them.
func (c *crew) attempts() []request {
	c.t.Helper()
	return c.requests(false)
}

// patches are those that were not refused with 409: the Node had changed meanwhile, nothing was written, and the controller decided anew.
func (c *crew) patches() []request {
	c.t.Helper()
	return slices.DeleteFunc(c.attempts(), func(r request) bool { return r.code == http.StatusConflict })
}

// awaitPatches waits until so many PATCHes have been sent.
func (c *crew) awaitPatches(n int, within time.Duration) {
	c.t.Helper()
	for deadline := time.Now().Add(within); len(c.patches()) < n; wait(c.t.Context(), 20*time.Millisecond) {
		if time.Now().After(deadline) {
			c.t.Fatalf("%d PATCHes were sent, not %d", len(c.patches()), n)
		}
	}
}

// told is the PATCH by which a puppet first told a word of a source, as the controller could hear it. Its zero value: none did.
func (c *crew) told(own []request, node, reason, source string) request {
	return carrier(own, node, c.puppets[node].said(reason, source))
}

// toldAgain is the one that told it for the first time after a PATCH of the controller's.
func (c *crew) toldAgain(own []request, sent request, reason, source string) request {
	last := c.puppets[sent.node].saidLast(reason, source)
	if !last.wanted.After(sent.at) {
		return request{}
	}
	return carrier(own, sent.node, last)
}

// carrier is the last PATCH before the publisher was content. A word that another one overtook went with that, or one before: the first PATCH
// after it was wanted then.
func carrier(own []request, node string, s saying) (carries request) {
	if s.wanted.IsZero() {
		return request{}
	}
	for _, r := range own {
		if r.node != node || r.code != 200 || r.at.Before(s.wanted.Truncate(time.Microsecond)) { // the log has no more digits
			continue
		}
		if s.acknowledged.IsZero() {
			return r
		}
		if r.at.After(s.acknowledged) {
			break
		}
		carries = r
	}
	return carries
}

// assigned are the PATCHes that arrived, one for each Node; more than one is an error. Of one whose sender was killed the API server notes 504,
// whether it arrived or not: it did, where no other one came after it.
func (c *crew) assigned() (sent []request) {
	c.t.Helper()
	seen := map[string]bool{}
	all := c.patches()
	for i, r := range all {
		lost := r.code >= 500 && !slices.ContainsFunc(all[i+1:], func(later request) bool { return later.node == r.node })
		if r.code != 200 && !lost {
			continue
		}
		if seen[r.node] {
			c.t.Errorf("%s was patched twice", r.node)
		}
		seen[r.node] = true
		sent = append(sent, r)
	}
	return sent
}

// checkWaves: a wave begins after all nodes of the wave before it have told Active, and so many may be unavailable at once.
func (c *crew) checkWaves(source string, settle time.Duration, maxUnavailable int, goals ...int) {
	c.t.Helper()
	c.checkWavesOf(c.assigned(), source, settle, maxUnavailable, goals...)
}

func (c *crew) checkWavesOf(sent []request, source string, settle time.Duration, maxUnavailable int, goals ...int) {
	c.t.Helper()
	if want := goals[len(goals)-1]; len(sent) != want {
		c.t.Errorf("%d of %d Nodes were patched", len(sent), want)
	}
	own := c.requests(true)
	wave, active := 0, time.Time{}
	for i, r := range sent {
		if i == goals[wave] {
			wave++
			if r.at.Before(active) {
				c.t.Errorf("wave %d began %v before the last node of wave %d was Active", wave+1, active.Sub(r.at), wave)
			}
		}
		at := c.told(own, r.node, "Active", source).at
		if at.IsZero() {
			c.t.Errorf("%s never said Active of %s", r.node, source)
		}
		if at.After(active) {
			active = at
		}
	}
	c.checkUnavailable(sent, source, settle, maxUnavailable)
}

// checkUnavailable: a node is unavailable from the PATCH that assigns to it until it has run that for the settle time. Both ends are those that
// the API server noted: of the first the controller knew before, of the second it can only have known after, and its own account of the
// settle time begins with that. So what it has to hold to is held against it to the full, and nothing more.
func (c *crew) checkUnavailable(sent []request, source string, settle time.Duration, limit int) {
	c.t.Helper()
	own := c.requests(true)
	until := map[string]time.Time{}
	for _, r := range sent {
		until[r.node] = c.told(own, r.node, "InTrial", source).at
	}
	c.checkLimit(sent, until, settle, limit)
}

func (c *crew) checkLimit(sent []request, until map[string]time.Time, settle time.Duration, limit int) {
	c.t.Helper()
	most := 0
	for i, r := range sent {
		var away []string
		for _, before := range sent[:i+1] {
			if runs := until[before.node]; runs.IsZero() || runs.Add(settle).After(r.at) {
				away = append(away, fmt.Sprintf("%s, which ran %v later", before.node, runs.Sub(r.at)))
			}
		}
		if most = max(most, len(away)); len(away) > limit {
			c.t.Errorf("when %s was patched, %d were unavailable, more than %d: %v", r.node, len(away), limit, away)
		}
	}
	c.t.Logf("%d of at most %d were unavailable at once", most, limit)
}
