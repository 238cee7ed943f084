package sync

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// Watches that break go on where they were, without a LIST, whatever has happened meanwhile.
func TestWatchesResume(t *testing.T) {
	a := "kube-system/a/kubelet"
	one := "source " + a + " ua@101 = one"
	for name, c := range map[string]struct {
		meanwhile func(api *fakeAPI)
		told      string
		asked     string // beside the watches
	}{
		"nothing":             {func(*fakeAPI) {}, "", ""},
		"an edit":             {func(api *fakeAPI) { api.set(configMap("a", "ua", "two")) }, "source " + a + " ua@103 = two", ""},
		"another assignment":  {func(api *fakeAPI) { api.set(assigned("local")) }, `local "local"`, ""},
		"a removal":           {func(api *fakeAPI) { api.set(node(nil)) }, `local ""`, ""},
		"the Node is deleted": {func(api *fakeAPI) { api.remove(assigned(a)) }, "gone", ""},
		"the ConfigMap is":    {func(api *fakeAPI) { api.remove(configMap("a", "ua", "one")) }, "problem " + a + ": ConfigMap kube-system/a does not exist; create it, or assign another", ""},
		"re-created":          {func(api *fakeAPI) { api.remove(configMap("a", "ua", "one")); api.set(configMap("a", "ub", "one")) }, "source " + a + " ub@104 = one", ""},
		"too much": {func(api *fakeAPI) {
			api.set(configMap("a", "ua", "two"))
			api.set(node(map[string]string{nodev1.ConfigSourceAnnotation: a, "x": "y"}))
			api.compact()
		}, "source " + a + " ua@103 = two", "list"},
		"a server that is new": {func(api *fakeAPI) { api.failWith(tooLarge, "watch nodes", "watch configmaps") }, "", "list"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := newFakeAPI()
				api.set(configMap("a", "ua", "one"))
				api.set(assigned(a))
				f := follow(t, api, nil)
				f.expect(t, one)
				elapse(time.Minute)
				api.asked()
				api.endWatches()
				c.meanwhile(api)
				elapse(resumeWithin + 100*time.Millisecond)
				synctest.Wait()
				f.mutex.Lock()
				told := f.told
				f.told = nil
				f.mutex.Unlock()
				if c.told != "" && (len(told) == 0 || told[len(told)-1] != c.told) || c.told == "" && len(told) > 0 {
					t.Errorf("told %q, expected %q", told, c.told)
				}
				if asked := strings.Join(api.asked(), " "); strings.Contains(asked, "list nodes") != (c.asked != "") || !strings.Contains(asked, "watch nodes") {
					t.Errorf("asked for %q", asked)
				}
			})
		})
	}
}

var tooLarge = apiFailure{code: http.StatusGatewayTimeout, message: "Too large resource version: 5000, current: 100"}

// Bookmarks say how far a watch has come where nothing happens to the object itself: what is forgotten by then is not missed.
func TestBookmarksKeepThePlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		api.set(node(nil))
		f := follow(t, api, nil)
		f.expect(t, `local ""`)
		elapse(time.Minute)
		api.bookmark()
		synctest.Wait()
		api.compact()
		api.asked()
		api.endWatches()
		elapse(resumeWithin)
		expectAsked(t, api, "watch nodes metadata")
		api.set(assigned("local"))
		f.expect(t, `local "local"`)
	})
}

// All connections of many nodes break at once: none of them LISTs, and they come back over five seconds.
func TestAFleetResumes(t *testing.T) {
	const nodes = 300
	for name, break_ := range map[string]func(*fakeAPI){
		"the connections break": func(*fakeAPI) {},
		"the API server is away for ten seconds": func(api *fakeAPI) {
			api.failWith(errors.New("connection refused"), "watch nodes", "list nodes")
			elapse(10 * time.Second)
			api.asked()
			api.failWith(nil, "watch nodes", "list nodes")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := newFakeAPI()
				api.set(node(nil))
				for range nodes {
					follow(t, api, nil)
				}
				elapse(time.Minute)
				api.asked()
				api.endWatches()
				break_(api)
				total := 0
				for second := range 30 {
					asked := api.asked()
					if total += len(asked); len(asked) > nodes*2/5 || strings.Contains(fmt.Sprint(asked), "list") {
						t.Errorf("%d requests before second %d, the first is %v", len(asked), second, asked[:1])
					}
					elapse(time.Second)
				}
				if total += len(api.asked()); total != nodes {
					t.Errorf("%d requests, expected one of each of %d nodes", total, nodes)
				}
			})
		})
	}
}

// An etcd that was restored from a backup has older versions than a watch goes on from: the watch stays silent, until somebody who has
// read the Node says so.
func TestARestoredEtcd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		api.set(configMap("a", "ua", "one"))
		for range 100 {
			api.set(assigned("kube-system/a/kubelet"))
		}
		f := follow(t, api, nil)
		f.expect(t, "source kube-system/a/kubelet ua@101 = one")
		elapse(time.Minute)
		api.endWatches()
		api.mutex.Lock()
		api.version, api.history = 50, nil
		api.mutex.Unlock()
		api.set(assigned("local"))
		elapse(time.Hour)
		f.expect(t)
		api.asked()
		for _, noNews := range []string{"not a number", "201", "202"} { // 202: the watch will bring it
			f.NodeIsAt(noNews)
			expectAsked(t, api)
		}
		f.expect(t)
		f.NodeIsAt("51")
		f.expect(t, `local "local"`)
		api.asked()
		f.NodeIsAt("51")
		expectAsked(t, api)
	})
}
