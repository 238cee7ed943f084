package v1

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// An Approval lets one held change through. It names the content that runs, the content that is to run and the hold itself, so that it
// is worth nothing for any other change.
type Approval string

// approvalDigits is its length.
const approvalDigits = 12

// anyLoss accepts whatever the look shows that is made just before the change.
const anyLoss = "+any"

// NewApproval makes the approval of a hold. nonce is random, and kept with the hold.
func NewApproval(runs, to, nonce string) Approval {
	sum := sha256.Sum256([]byte(runs + "\x00" + to + "\x00" + nonce))
	return Approval(hex.EncodeToString(sum[:])[:approvalDigits])
}

// WithAny is the value of the annotation that lets the change through whatever pods the look names that is made just before it.
func (a Approval) WithAny() string { return string(a) + anyLoss }

// GivenBy reports whether the value of [AllowDisruptionAnnotation] is this approval, and whether it accepts any loss.
func (a Approval) GivenBy(value string) (given, acceptsAny bool) {
	if a == "" {
		return false, false
	}
	word, acceptsAny := strings.CutSuffix(value, anyLoss)
	given = word == string(a)
	return given, given && acceptsAny
}
