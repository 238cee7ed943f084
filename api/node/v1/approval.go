package v1

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Approval approves one held change. It is a digest of the content that runs, the content that is to run and the hold itself, so that it is not valid
// for any other change.
type Approval string

// approvalDigits is the length of an approval.
const approvalDigits = 12

// anyLoss is the suffix that accepts any pods that would be lost just before the change.
const anyLoss = "+any"

// NewApproval returns the approval of a hold. nonce is random, and kept with the hold.
func NewApproval(runs, to, nonce string) Approval {
	sum := sha256.Sum256([]byte(runs + "\x00" + to + "\x00" + nonce))
	return Approval(hex.EncodeToString(sum[:])[:approvalDigits])
}

// WithAny is the value of the annotation that approves the change whatever pods would be lost just before it.
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
