package sync

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// answered reports whether the API server, whatever it said, was reached.
func answered(err error) bool {
	var status *apierrors.StatusError
	return err == nil || errors.As(err, &status)
}

// final reports whether a failure is the API server's answer about the object, and not about the API server's own health. Only
// such an answer takes away what was resolved before.
func final(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsBadRequest(err) || apierrors.IsInvalid(err)
}

// unreadable is the problem of a ConfigMap that cannot be read.
func unreadable(source *corev1.ConfigMapNodeConfigSource, err error) *Problem {
	words := fmt.Sprintf("%s cannot be read: %s", nameOf(source), because(err))
	if apierrors.IsForbidden(err) {
		words += "; let group system:nodes get, list and watch it"
	}
	return &Problem{Error: downloadError, Words: words}
}

// because says why a request failed in words that do not change from try to try: errors of the network hold port numbers
// and would look like news each time.
func because(err error) string {
	if CacheIsBehind(err) { // its answer has both versions
		return "what the API server remembers is older than the Node"
	}
	if answered(err) {
		return oneLine(err.Error())
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("the API server gave no answer within %s", RequestTimeout)
	}
	for cause := errors.Unwrap(err); cause != nil; cause = errors.Unwrap(err) {
		err = cause
	}
	return "the API server cannot be reached: " + oneLine(err.Error())
}

// steady gives an error the text of because: the Node shows what a look waits for.
func steady(err error) error { return steadyError{err} }

type steadyError struct{ err error }

func (e steadyError) Error() string { return because(e.err) }
func (e steadyError) Unwrap() error { return e.err }
