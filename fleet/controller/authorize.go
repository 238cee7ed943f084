package controller

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// reviewsPerSecond bounds what strangers who ask for metrics can make this process ask the API server.
const reviewsPerSecond = 5

// authorized lets those read the metrics whom the API server lets get that path: a TokenReview says who asks, a SubjectAccessReview whether
// they may. controller-runtime has such a filter, too, and links the whole API server for it: 21 MB of a binary of 53.
func authorized(config *rest.Config, httpClient *http.Client) (metricsserver.Filter, error) {
	asks, err := client.New(config, client.Options{HTTPClient: httpClient})
	if err != nil {
		return nil, fmt.Errorf("making a client for reviews: %w", err)
	}
	limiter := flowcontrol.NewTokenBucketRateLimiter(reviewsPerSecond, 2*reviewsPerSecond)
	return func(log logr.Logger, next http.Handler) (http.Handler, error) {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			token, is := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
			if !is || token == "" {
				http.Error(w, "Unauthorized", http.StatusUnauthorized)
				return
			}
			if !limiter.TryAccept() {
				http.Error(w, "Too many requests", http.StatusTooManyRequests)
				return
			}
			switch code, err := review(r.Context(), asks, token, r.URL.Path, strings.ToLower(r.Method)); {
			case err != nil:
				log.Error(err, "nobody knows who may read the metrics")
				http.Error(w, "Internal Server Error", http.StatusInternalServerError)
			case code != http.StatusOK:
				http.Error(w, http.StatusText(code), code)
			default:
				next.ServeHTTP(w, r)
			}
		}), nil
	}, nil
}

// review is the status code that who holds the token gets.
func review(ctx context.Context, asks client.Writer, token, path, verb string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	who := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	if err := asks.Create(ctx, who); err != nil {
		return 0, fmt.Errorf("asking whose token it is: %w", err)
	}
	if !who.Status.Authenticated {
		return http.StatusUnauthorized, nil
	}
	user := &who.Status.User
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, value := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(value)
	}
	may := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user.Username, UID: user.UID, Groups: user.Groups,
		Extra: extra, NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: verb}}}
	if err := asks.Create(ctx, may); err != nil {
		return 0, fmt.Errorf("asking what %s may: %w", user.Username, err)
	}
	if !may.Status.Allowed {
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}
