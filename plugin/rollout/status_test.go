package rollout

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/util/flowcontrol"
)

// A rate limiter that knows the end refuses to wait for it, and says so instead of the rollout's state.
func TestAnEndThatNoLimiterKnows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := endsAfter(t.Context(), 5*time.Second)
		defer end()
		if _, known := ctx.Deadline(); known {
			t.Error("it has a deadline")
		}
		if err := flowcontrol.NewTokenBucketRateLimiter(0.1, 1).Wait(ctx); err != nil {
			t.Error(err)
		}
		limiter, began := flowcontrol.NewTokenBucketRateLimiter(0.01, 1), time.Now()
		limiter.Accept()
		if err := limiter.Wait(ctx); err == nil || time.Since(began) != 5*time.Second || !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			t.Errorf("after %v: %v, %v", time.Since(began), err, context.Cause(ctx))
		}
	})
}
