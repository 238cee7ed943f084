package controller

import (
	"errors"
	"net/http"
)

var errFenced = errors.New("the request was not sent, because the Lease could end before it")

// fence sends a request that writes only while this process leads for long enough that no other process can lead
// when the request arrives. The request asks the API server to give up after the same time.
type fence struct {
	next   http.RoundTripper
	leader leader
}

// RoundTrip is called for each attempt of a request, just before it is sent. It returns errFenced for one that is not sent.
func (f *fence) RoundTrip(request *http.Request) (*http.Response, error) {
	switch request.Method {
	case http.MethodGet, http.MethodHead:
		return f.next.RoundTrip(request)
	}
	if !f.leader.outlasts(requestTime) {
		if request.Body != nil {
			_ = request.Body.Close()
		}
		return nil, errFenced
	}
	request = request.Clone(request.Context())
	query := request.URL.Query()
	query.Set("timeout", requestTime.String())
	request.URL.RawQuery = query.Encode()
	return f.next.RoundTrip(request)
}
