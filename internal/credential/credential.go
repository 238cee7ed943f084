// Package credential keeps a credential with the API server that it was given for. client-go adds it to each request, also to the one with
// which a redirect is followed, whatever host that one is for; and the API server hands on what a kubelet answers, redirects included.
package credential

import (
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"

	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

// maxTarget is how much of a redirect's target is reported, in bytes, because the server that answers chooses it.
const maxTarget = 256

// Confine changes config: clients that are made from it follow no redirect, and send nothing to another host than config names. A proxy, an
// exec plugin and the issuer of tokens have connections of their own. They are not concerned.
func Confine(config *rest.Config) {
	c := confined{}
	if base, _, err := rest.DefaultServerUrlFor(config); err == nil { // else no client can be made of it either
		c.scheme, c.host = base.Scheme, base.Host
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &confined{next, c.scheme, c.host} })
}

// confined is below client-go's own transports, so what it does not pass on has left this process with no credential.
type confined struct {
	next         http.RoundTripper
	scheme, host string
}

// RoundTrip sends a request to the API server alone. A redirect is an error.
func (c *confined) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Scheme != c.scheme || request.URL.Host != c.host {
		return nil, fmt.Errorf("a request for %s was not sent, because its credential is for the API server %s://%s",
			printable(request.URL.Scheme+"://"+request.URL.Host), c.scheme, c.host)
	}
	response, err := c.next.RoundTrip(request)
	if err != nil || !isRedirect(response.StatusCode) {
		return response, err
	}
	_ = response.Body.Close()
	return nil, fmt.Errorf("the answer is a redirect (%d %s) to %s, which is not followed, "+
		"because the credential is for the API server %s alone; "+
		"find out what answers: a proxy in front of the API server, or a hostile kubelet", response.StatusCode,
		http.StatusText(response.StatusCode), printable(response.Header.Get("Location")), c.host)
}

// isRedirect has the answers that [http.Client] follows.
func isRedirect(code int) bool {
	switch code {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// printable is a stranger's text, in quotes.
func printable(text string) string {
	return fmt.Sprintf("%q", bounded.Text(bounded.Line(text), maxTarget))
}
