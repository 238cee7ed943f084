//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

const requestTimeout = 20 * time.Second

// request makes one API request as admin.
func (n *node) request(method, path string, body, answer any) (code int, err error) {
	return requestAs(n.AdminConfig(), method, path, body, answer)
}

// methodApply is a PATCH by server-side apply.
const methodApply = "APPLY"

// requestAs makes one API request. body is sent as JSON (nil: none) and the answer decoded into answer (nil: dropped); the
// code is that of any answer, err is for everything but 2xx. A PATCH is a merge patch.
func requestAs(identity *rest.Config, method, path string, body, answer any) (code int, err error) {
	client, err := rest.HTTPClientFor(identity)
	if err != nil {
		return 0, err
	}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	var content []byte
	if body != nil {
		if content, err = json.Marshal(body); err != nil {
			return 0, err
		}
	}
	contentType := "application/json"
	switch method {
	case http.MethodPatch:
		contentType = "application/merge-patch+json"
	case methodApply:
		method, contentType = http.MethodPatch, "application/apply-patch+yaml"
		path += "?fieldManager=e2e&force=true"
	}
	request, err := http.NewRequestWithContext(ctx, method, identity.Host+path, bytes.NewReader(content))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", contentType)
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return response.StatusCode, err
	}
	if response.StatusCode/100 != 2 {
		return response.StatusCode, fmt.Errorf("%s %s: %s: %s", method, path, response.Status, text)
	}
	if answer != nil {
		err = json.Unmarshal(text, answer)
	}
	return response.StatusCode, err
}

// must makes a request that has to succeed.
func (n *node) must(t *testing.T, method, path string, body, answer any) {
	t.Helper()
	if _, err := n.request(method, path, body, answer); err != nil {
		t.Fatal(err)
	}
}

// remove deletes an object; that it is not there is fine.
func (n *node) remove(t *testing.T, path string) {
	t.Helper()
	if code, err := n.request(http.MethodDelete, path, nil, nil); err != nil && code != http.StatusNotFound {
		t.Fatal(err)
	}
}

type object = map[string]any
