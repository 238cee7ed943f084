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
	// reviewTime limits a review, and the wait for a place.
	reviewTime = 10 * time.Second
	// reviewsAtOnce limits the unknown tokens that are reviewed at a time, one of each address, so that strangers at fewer addresses do not block others,
	// however slow the API server is. Known tokens have as many places of their own, and so have the addresses that known tokens come from.
	reviewsAtOnce = 8
	// reviewsPerSecond and reviewBurst limit the reviews of one address, until the API server has allowed its token.
	reviewsPerSecond = 1
	reviewBurst      = 5
	// remembered limits the entries of each cache.
	remembered = 1024
	// unknownFor and forbiddenFor are how long a token is refused without a review: an unknown one, and one of a user without the right.
	unknownFor, forbiddenFor = time.Minute, 10 * time.Second
	// allowedFor is how long a token is accepted without a review. For knownFor after that, it has a place of its own for reviews, and so has another
	// token from the same address, because a scraper renews its token.
	allowedFor, knownFor = 10 * time.Second, 24 * time.Hour
	// addressFor is how long an address is remembered after its newest request.
	addressFor = 10 * time.Minute
)

// authorized lets a client read the metrics if the API server allows it to get that path: a TokenReview has the user of the token, and a
// SubjectAccessReview whether the user may. The same filter of controller-runtime would link the API server: 21 MB in a binary of 53.
func authorized(config *rest.Config, httpClient *http.Client) (metricsserver.Filter, error) {
	asks, err := client.New(config, client.Options{HTTPClient: httpClient})
	if err != nil {
		return nil, fmt.Errorf("creating a client for reviews: %w", err)
	}
	return newReviewers(asks, clock.RealClock{}).filter, nil
}

// asker is the part of a client that makes reviews.
type asker interface {
	Create(ctx context.Context, review client.Object, options ...client.CreateOption) error
}

// reviewers ask the API server about tokens, and cache its answers. Tokens are kept as digests.
type reviewers struct {
	asks      asker
	clock     clock.PassiveClock
	refused   *lru.LRUExpireCache // of asked: the code
	known     *lru.LRUExpireCache // of asked: until when it is accepted without a review
	trusted   *lru.LRUExpireCache // of netip.Prefix: that a known token came from there
	addresses *lru.LRUExpireCache // of netip.Prefix: its limiter

	strangers, familiar lane          // of unknown tokens; familiar of those from trusted addresses
	places              chan struct{} // of known tokens, one for each review at a time
	mutex               sync.Mutex    // guards lane.underWay, and addresses between Get and Add
}

// lane has places for concurrent reviews, and the addresses that have a place or wait for one.
type lane struct {
	places   chan struct{}
	underWay map[netip.Prefix]bool
}

// asked is the key of an answer.
type asked struct {
	token      [sha256.Size]byte
	path, verb string
}

func newReviewers(asks asker, of clock.PassiveClock) *reviewers {
	cache := func() *lru.LRUExpireCache { return lru.NewLRUExpireCacheWithClock(remembered, of) }
	places := func() chan struct{} { return make(chan struct{}, reviewsAtOnce) }
	return &reviewers{asks: asks, clock: of, refused: cache(), known: cache(), trusted: cache(), addresses: cache(), places: places(),
		strangers: lane{places(), map[netip.Prefix]bool{}}, familiar: lane{places(), map[netip.Prefix]bool{}}}
}

func (r *reviewers) filter(log logr.Logger, next http.Handler) (http.Handler, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		switch code, err := r.code(request); {
		case err != nil:
			log.Error(err, "the API server cannot be asked who may read the metrics")
			http.Error(w, "Internal Server Error", http.StatusInternalServerError)
		case code != http.StatusOK:
			http.Error(w, http.StatusText(code), code)
		default:
			next.ServeHTTP(w, request)
		}
	}), nil
}

// code returns the status code for a request, or an error if the API server cannot be asked.
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
	from, places := prefixOf(request.RemoteAddr), r.places
	if !known {
		through := &r.strangers
		if _, is := r.trusted.Get(from); is {
			through = &r.familiar
		}
		if !r.begin(through, from) {
			return http.StatusTooManyRequests, nil
		}
		defer r.end(through, from)
		places = through.places
	}
	if !wait(request.Context(), places) {
		return http.StatusTooManyRequests, nil
	}
	defer func() { <-places }()
	ctx, cancel := context.WithTimeout(request.Context(), reviewTime)
	defer cancel()
	code, err := review(ctx, r.asks, token, of.path, of.verb)
	if err == nil {
		r.remember(of, code, known)
	}
	if err == nil && code == http.StatusOK {
		r.trusted.Add(from, true, knownFor)
	}
	return code, err
}

// wait takes a place, and reports whether there was one in time.
func wait(ctx context.Context, places chan struct{}) bool {
	ctx, cancel := context.WithTimeout(ctx, reviewTime)
	defer cancel()
	select {
	case places <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// begin reports whether an unknown token from this address may be reviewed now. If so, the caller has to call end.
func (r *reviewers) begin(through *lane, from netip.Prefix) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if through.underWay[from] || len(through.underWay) == remembered || !r.limiter(from).TryAccept() {
		return false
	}
	through.underWay[from] = true
	return true
}

func (r *reviewers) end(through *lane, from netip.Prefix) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(through.underWay, from)
}

// remember caches an answer. The refusal of a known token is not cached, because the API server may be wrong for a moment: the token is reviewed once
// more.
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

// limiter returns the rate limiter of an address. The caller holds the mutex.
func (r *reviewers) limiter(from netip.Prefix) flowcontrol.PassiveRateLimiter {
	limiter, is := r.addresses.Get(from)
	if !is {
		limiter = flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(reviewsPerSecond, reviewBurst, r.clock)
	}
	r.addresses.Add(from, limiter, addressFor)
	return limiter.(flowcontrol.PassiveRateLimiter)
}

// prefixOf returns the address that a request came from; with IPv6 the network, which one machine has.
func prefixOf(address string) netip.Prefix {
	from, _ := netip.ParseAddrPort(address) // a malformed one is the zero address
	bits := 32
	if from.Addr().Is6() && !from.Addr().Is4In6() {
		bits = 64
	}
	prefix, _ := from.Addr().Unmap().Prefix(bits)
	return prefix
}

// review returns the status code for the holder of a token.
func review(ctx context.Context, asks asker, token, path, verb string) (int, error) {
	who := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	if err := asks.Create(ctx, who); err != nil {
		return 0, fmt.Errorf("reviewing the token: %w", err)
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
		return 0, fmt.Errorf("reviewing the access of user %s: %w", user.Username, err)
	}
	if !may.Status.Allowed {
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}
