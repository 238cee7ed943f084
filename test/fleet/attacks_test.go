//go:build e2e

package fleet

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/client-go/rest"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// An attack is a row: who sends what, and what the answer has to be. The number is that of a review, in which 179 were tried by hand.
type attack struct {
	number int
	who    string // one of attackers
	act    deed
	want   string // yes, policy, RBAC, Node, PodSecurity, or a status code; several with | between them
}

// A deed gives the status code of the API server, and its answer.
type deed func(a *attacks, who *person) (code int, answer string)

// The attacks on the API, with the outcome that is wanted. Each request is a dry run unless its deed says otherwise, so the rows are independent of
// each other, and admission answers as it would. Rows that another test has are in elsewhere; these are not run here:
//
//   - 7, a dry run as an oracle: every row of this test is one.
//   - 51 deletes what a selector has not matched, which asks no policy; 50 is the row about the collection.
//   - 162, that a viewer writes nothing: each act of TestRights is tried by a viewer, here and in test/e2e.
//
// A row fails with what was wanted, and with the answer. One alone: -run 'TestAttacks/^139$'. The attacks of the review that are no single requests are
// in otherAttacks, each with its test.
func TestAttacks(t *testing.T) {
	a := newAttacks(t)
	people := a.people()
	seen := map[int]int{}
	for number := range elsewhere {
		seen[number]++
	}
	for _, row := range slices.Concat(attacksOfNodes(), attacksByLabels(), attacksOnConfigMaps(), attacksOnPools(), attacksByOperators(), attacksInNamespaces(), attacksByPatches()) {
		seen[row.number]++
		who, known := people[row.who]
		if !known {
			t.Errorf("%d: nobody knows %q", row.number, row.who)
			continue
		}
		t.Run(strconv.Itoa(row.number), func(t *testing.T) {
			a.t = t
			code, answer := row.act(a, who)
			if got := outcome(code, answer); !slices.ContainsFunc(strings.Split(row.want, "|"), func(want string) bool { return want == got || want == strconv.Itoa(code) }) {
				t.Errorf("%s: wanted %s, got %s (%d): %.600s", row.who, row.want, got, code, answer)
			}
		})
	}
	a.t = t
	for number := 1; number <= 179; number++ {
		if seen[number] != 1 {
			t.Errorf("attack %d is in %d places, want one row, or one line of elsewhere", number, seen[number])
		}
	}
	for attack, test := range otherAttacks {
		if !strings.Contains(test, "Test") && !strings.Contains(test, "rule") {
			t.Errorf("%s: no test is named: %s", attack, test)
		}
	}
}

// outcome names who refused a request; yes is nobody.
func outcome(code int, answer string) string {
	switch {
	case code < 300:
		return "yes"
	case strings.Contains(answer, "violates PodSecurity"):
		return "PodSecurity"
	}
	if by := cluster.RefusedBy(fmt.Errorf("%s", answer)); by != answer {
		return by
	}
	return strconv.Itoa(code)
}

// How a body is patched.
const (
	mergePatch     = "application/merge-patch+json"
	strategicPatch = "application/strategic-merge-patch+json"
	jsonPatch      = "application/json-patch+json"
	applyPatch     = "application/apply-patch+yaml"
)

func merge(path, body string) deed     { return send(http.MethodPatch, path, mergePatch, body) }
func strategic(path, body string) deed { return send(http.MethodPatch, path, strategicPatch, body) }
func jsonOps(path, body string) deed   { return send(http.MethodPatch, path, jsonPatch, body) }
func apply(path, body string) deed {
	return send(http.MethodPatch, path+"?force=true&fieldManager=attacks", applyPatch, body)
}
func post(path, body string) deed { return send(http.MethodPost, path, "application/json", body) }
func remove(path string) deed     { return send(http.MethodDelete, path, "application/json", "") }
func read(path string) deed       { return send(http.MethodGet, path, "", "") }

// put sends the whole object as it is now, changed by a merge patch.
func put(path, change string) deed {
	return func(a *attacks, who *person) (int, string) {
		_, now := a.request(a.admin, http.MethodGet, path, "", "")
		body, err := jsonpatch.MergePatch([]byte(now), []byte(change))
		if err != nil {
			return 0, err.Error()
		}
		return a.request(who.config, http.MethodPut, path, "application/json", string(body))
	}
}

func send(method, path, kind, body string) deed {
	return func(a *attacks, who *person) (int, string) { return a.request(who.config, method, path, kind, body) }
}

// as is a deed that is done by impersonation.
func as(user string, groups []string, do deed) deed {
	return func(a *attacks, who *person) (int, string) {
		config := rest.CopyConfig(who.config)
		config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
		return do(a, &person{who.Client, config})
	}
}

// withToken is a deed that is done with a token of an account, which is asked for first. Where there is none, that is the answer.
func withToken(namespace, account string, do deed) deed {
	return func(a *attacks, who *person) (int, string) {
		path := "/api/v1/namespaces/" + namespace + "/serviceaccounts/" + account + "/token"
		code, answer := a.really(who.config, http.MethodPost, path, "application/json", `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}`)
		var made struct{ Status struct{ Token string } }
		if err := json.Unmarshal([]byte(answer), &made); err != nil || made.Status.Token == "" {
			return code, answer
		}
		config := rest.AnonymousClientConfig(who.config)
		config.BearerToken = made.Status.Token
		return do(a, &person{nil, config})
	}
}

// request sends a dry run.
func (a *attacks) request(config *rest.Config, method, path, kind, body string) (code int, answer string) {
	if method != http.MethodGet {
		separator := "?"
		if strings.Contains(path, "?") {
			separator = "&"
		}
		path += separator + "dryRun=" + url.QueryEscape("All")
	}
	return a.really(config, method, path, kind, body)
}

// really sends a request.
func (a *attacks) really(config *rest.Config, method, path, kind, body string) (code int, answer string) {
	connection, err := rest.HTTPClientFor(config)
	if err != nil {
		return 0, err.Error()
	}
	defer connection.CloseIdleConnections()
	request, err := http.NewRequestWithContext(a.t.Context(), method, config.Host+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return 0, err.Error()
	}
	if request.Header.Set("Accept", "application/json"); kind != "" {
		request.Header.Set("Content-Type", kind)
	}
	response, err := connection.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(text)
}
