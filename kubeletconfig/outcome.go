package kubeletconfig

import "fmt"

// Outcome is what a pre-flight says about a configuration.
type Outcome int

const (
	// Accepted means that the kubelet read, merged and validated it.
	Accepted Outcome = iota + 1
	// Refused means that the kubelet would exit because of it at every start.
	Refused
	// Environment means that it fails, but so does the control, in the same way: flags, drop-in files or the binary are to blame, not the
	// configuration.
	Environment
	// Unknown means that the pre-flight cannot decide; only a start can.
	Unknown
)

func (o Outcome) String() string {
	switch o {
	case Accepted:
		return "accepted"
	case Refused:
		return "refused"
	case Environment:
		return "environment"
	case Unknown:
		return "unknown"
	default:
		return fmt.Sprintf("Outcome(%d)", int(o))
	}
}

// MarshalText returns the name of an outcome, for files.
func (o Outcome) MarshalText() ([]byte, error) {
	if o < Accepted || o > Unknown {
		return nil, fmt.Errorf("%s is not an outcome of a pre-flight", o)
	}
	return []byte(o.String()), nil
}

// UnmarshalText reads what MarshalText writes, and nothing else.
func (o *Outcome) UnmarshalText(text []byte) error {
	for known := Accepted; known <= Unknown; known++ {
		if known.String() == string(text) {
			*o = known
			return nil
		}
	}
	return fmt.Errorf("unknown outcome %.64q (want accepted, refused, environment or unknown)", text)
}
