package controller

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
)

// reviews is an API server that knows two people, one of whom may read the metrics.
func reviews(t *testing.T, asked *int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		decode := func(into any) {
			*asked++
			if err := json.NewDecoder(r.Body).Decode(into); err != nil {
				t.Error(err)
			}
		}
		switch {
		case strings.HasSuffix(r.URL.Path, "/tokenreviews"):
			var review authenticationv1.TokenReview
			decode(&review)
			name, known := map[string]string{"good": "prometheus", "poor": "somebody"}[review.Spec.Token]
			review.Status = authenticationv1.TokenReviewStatus{Authenticated: known, User: authenticationv1.UserInfo{Username: name, Groups: []string{"g"}}}
			_ = json.NewEncoder(w).Encode(review)
		case strings.HasSuffix(r.URL.Path, "/subjectaccessreviews"):
			var review authorizationv1.SubjectAccessReview
			decode(&review)
			at := review.Spec.NonResourceAttributes
			review.Status.Allowed = review.Spec.User == "prometheus" && len(review.Spec.Groups) == 1 && at.Path == "/metrics" && at.Verb == "get"
			_ = json.NewEncoder(w).Encode(review)
		case r.URL.Path == "/apis/authentication.k8s.io/v1":
			_, _ = w.Write([]byte(`{"kind":"APIResourceList","groupVersion":"authentication.k8s.io/v1","resources":[{"name":"tokenreviews","namespaced":false,"kind":"TokenReview","verbs":["create"]}]}`))
		case r.URL.Path == "/apis/authorization.k8s.io/v1":
			_, _ = w.Write([]byte(`{"kind":"APIResourceList","groupVersion":"authorization.k8s.io/v1","resources":[{"name":"subjectaccessreviews","namespaced":false,"kind":"SubjectAccessReview","verbs":["create"]}]}`))
		case r.URL.Path == "/apis":
			_, _ = w.Write([]byte(`{"kind":"APIGroupList","groups":[{"name":"authentication.k8s.io","versions":[{"groupVersion":"authentication.k8s.io/v1","version":"v1"}],"preferredVersion":{"groupVersion":"authentication.k8s.io/v1","version":"v1"}},{"name":"authorization.k8s.io","versions":[{"groupVersion":"authorization.k8s.io/v1","version":"v1"}],"preferredVersion":{"groupVersion":"authorization.k8s.io/v1","version":"v1"}}]}`))
		default:
			_, _ = w.Write([]byte(`{"kind":"APIVersions","versions":[]}`))
		}
	})
}

// Metrics are for those whom the API server lets get them; and who asks too often is not asked for.
func TestWhoMayReadTheMetrics(t *testing.T) {
	asked := 0
	server := httptest.NewServer(reviews(t, &asked))
	defer server.Close()
	filter, err := authorized(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	handler, err := filter(logr.Discard(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("metrics")) }))
	if err != nil {
		t.Fatal(err)
	}
	get := func(authorization string) int {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
		if authorization != "" {
			request.Header.Set("Authorization", authorization)
		}
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		return answer.Code
	}
	for authorization, want := range map[string]int{"": 401, "Basic x": 401, "Bearer ": 401, "Bearer bad": 401, "Bearer poor": 403, "Bearer good": 200} {
		if got := get(authorization); got != want {
			t.Errorf("%q gets %d, not %d", authorization, got, want)
		}
	}
	refused := 0
	for range 100 {
		if get("Bearer bad") == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused < 50 || asked > 60 {
		t.Errorf("of 100 strangers %d were put off, and the API server was asked %d times", refused, asked)
	}
}
