package controller

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	lru "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	// reviewTime bounds a review.
	reviewTime = 10 * time.Second
	// reviewsAtOnce bounds what those who ask for metrics can make this process ask the API server at a time; those whom it knows have as many for
	// themselves.
	reviewsAtOnce = 2
	// reviewsPerSecond and reviewBurst are those of one address, until the API server has let its token read the metrics.
	reviewsPerSecond = 1
	reviewBurst      = 5
	// remembered bounds each thing that is remembered of those who ask.
	remembered = 1024
	// unknownFor and forbiddenFor are how long a token is refused from memory: one that is nobody's, and one of a user who may not.
	unknownFor, forbiddenFor = time.Minute, 10 * time.Second
	// allowedFor is how long a token is let through from memory; for knownFor after that junk does not keep it from its review.
	allowedFor, knownFor = 10 * time.Second, 24 * time.Hour
	// addressFor is how long an address is remembered after its newest request.
	addressFor = 10 * time.Minute
)

// authorized lets those read the metrics whom the API server lets get that path: a TokenReview says who asks, a SubjectAccessReview whether
// they may. controller-runtime has such a filter, too, and links the whole API server for it: 21 MB of a binary of 53.
func authorized(config *rest.Config, httpClient *http.Client) (metricsserver.Filter, error) {
	asks, err := client.New(config, client.Options{HTTPClient: httpClient})
	if err != nil {
		return nil, fmt.Errorf("making a client for reviews: %w", err)
	}
	return newReviewers(asks, clock.RealClock{}).filter, nil
}

// asker is what is needed of a client.
type asker interface {
	Create(ctx context.Context, review client.Object, options ...client.CreateOption) error
}

// reviewers ask the API server about tokens, and remember what it said. Tokens are kept as digests.
type reviewers struct {
	asks                asker
	clock               clock.PassiveClock
	refused             *lru.LRUExpireCache // of asked: the code
	known               *lru.LRUExpireCache // of asked: until when it is let through without a review
	addresses           *lru.LRUExpireCache // of netip.Prefix: its limiter
	limiters            sync.Mutex          // addresses, from looking to adding
	strangers, familiar chan struct{}       // one place for each review at a time, for strangers and for those who are known
}

// asked is what one answer is for.
type asked struct {
	token      [sha256.Size]byte
	path, verb string
}

func newReviewers(asks asker, of clock.PassiveClock) *reviewers {
	cache := func() *lru.LRUExpireCache { return lru.NewLRUExpireCacheWithClock(remembered, of) }
	return &reviewers{asks: asks, clock: of, refused: cache(), known: cache(), addresses: cache(),
		strangers: make(chan struct{}, reviewsAtOnce), familiar: make(chan struct{}, reviewsAtOnce)}
}

func (r *reviewers) filter(log logr.Logger, next http.Handler) (http.Handler, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		switch code, err := r.code(request); {
		case err != nil:
			log.Error(err, "nobody knows who may read the metrics")
			http.Error(w, "Internal Server Error", http.StatusInternalServerError)
		case code != http.StatusOK:
			http.Error(w, http.StatusText(code), code)
		default:
			next.ServeHTTP(w, request)
		}
	}), nil
}

// code is the status code that a request gets.
func (r *reviewers) code(request *http.Request) (int, error) {
	token, is := strings.CutPrefix(request.Header.Get("Authorization"), "Bearer ")
	if !is || token == "" {
		return http.StatusUnauthorized, nil
	}
	of := asked{sha256.Sum256([]byte(token)), request.URL.Path, strings.ToLower(request.Method)}
	if code, is := r.refused.Get(of); is {
		return code.(int), nil
	}
	until, known := r.known.Get(of)
	if known && r.clock.Now().Before(until.(time.Time)) {
		return http.StatusOK, nil
	}
	places := r.familiar
	if !known {
		if places = r.strangers; !r.limiter(request.RemoteAddr).TryAccept() {
			return http.StatusTooManyRequests, nil
		}
	}
	ctx, cancel := context.WithTimeout(request.Context(), reviewTime)
	defer cancel()
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
	case <-ctx.Done():
		return http.StatusTooManyRequests, nil
	}
	code, err := review(ctx, r.asks, token, of.path, of.verb)
	if err == nil {
		r.remember(of, code, known)
	}
	return code, err
}

// remember keeps an answer. A token that was known may be refused because the API server cannot tell for a moment: it is reviewed once more before
// that is believed.
func (r *reviewers) remember(of asked, code int, known bool) {
	switch {
	case code == http.StatusOK:
		r.known.Add(of, r.clock.Now().Add(allowedFor), knownFor)
	case known:
		r.known.Remove(of)
	case code == http.StatusForbidden:
		r.refused.Add(of, code, forbiddenFor)
	default:
		r.refused.Add(of, code, unknownFor)
	}
}

// limiter is that of the address, or of the network that one machine has with IPv6.
func (r *reviewers) limiter(address string) flowcontrol.PassiveRateLimiter {
	from, _ := netip.ParseAddrPort(address) // one that is none has a limiter as well
	bits := 32
	if from.Addr().Is6() && !from.Addr().Is4In6() {
		bits = 64
	}
	prefix, _ := from.Addr().Unmap().Prefix(bits)
	r.limiters.Lock()
	defer r.limiters.Unlock()
	limiter, is := r.addresses.Get(prefix)
	if !is {
		limiter = flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(reviewsPerSecond, reviewBurst, r.clock)
	}
	r.addresses.Add(prefix, limiter, addressFor)
	return limiter.(flowcontrol.PassiveRateLimiter)
}

// review is the status code that who holds the token gets.
func review(ctx context.Context, asks asker, token, path, verb string) (int, error) {
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
