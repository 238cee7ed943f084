package controller

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// slowServer knows the tokens that begin with "scraper", and takes two seconds for each answer.
type slowServer struct{}

const slowAnswer = 2 * time.Second

func (slowServer) Create(ctx context.Context, review client.Object, _ ...client.CreateOption) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(slowAnswer):
	}
	switch review := review.(type) {
	case *authenticationv1.TokenReview:
		review.Status.Authenticated = len(review.Spec.Token) > 7 && review.Spec.Token[:7] == "scraper"
	case *authorizationv1.SubjectAccessReview:
		review.Status.Allowed = true
	}
	return nil
}

// Strangers who flood keep no scraper waiting while the API server is slow: neither with its first token, as long as they have fewer addresses than
// there are places, nor with a renewed or a known one, however many addresses they have. It is served within the time of its own two reviews.
func TestAFloodWhileReviewsAreSlow(t *testing.T) {
	for name, row := range map[string]struct {
		addresses int
		before    string // a token that the scraper had before the flood
		token     string
	}{
		"a new scraper, and few addresses":       {3, "", "scraper-new"},
		"a new scraper, and all places but one":  {reviewsAtOnce - 1, "", "scraper-new"},
		"a renewed token, and few addresses":     {3, "scraper-old", "scraper-new"},
		"a renewed token, and many addresses":    {200, "scraper-old", "scraper-new"},
		"a known token, and many addresses":      {200, "scraper-old", "scraper-old"},
		"a renewed token, and all that it holds": {remembered + 100, "scraper-old", "scraper-new"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newReviewers(slowServer{}, clock.RealClock{})
				get := func(from, token string) int {
					request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
					request.RemoteAddr = from
					request.Header.Set("Authorization", "Bearer "+token)
					code, err := r.code(request)
					if err != nil {
						t.Error(err)
					}
					return code
				}
				if row.before != "" && get(scraper, row.before) != http.StatusOK {
					t.Fatal("the scraper is not let through before the flood")
				}
				end := time.Now().Add(40 * time.Second)
				for i := range row.addresses {
					from := fmt.Sprintf("172.16.%d.%d:1", i/256, i%256)
					go func() {
						for n := 0; time.Now().Before(end); n++ {
							go get(from, fmt.Sprintf("junk %d %d", i, n))
							time.Sleep(time.Second)
						}
					}()
				}
				time.Sleep(20*time.Second + time.Second/2)
				began := time.Now()
				code := get(scraper, row.token)
				if took := time.Since(began); code != http.StatusOK || took > 2*slowAnswer {
					t.Errorf("after %v it gets %d", took, code)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if n := len(r.strangers.underWay) + len(r.familiar.underWay); n != 0 {
					t.Errorf("%d reviews are under way for ever", n)
				}
			})
		})
	}
}
