package config

import "fmt"

// Outcome is what a pre-flight says about a configuration.
type Outcome int

const (
	// Accepted: the kubelet read, merged and validated it.
	Accepted Outcome = iota + 1
	// Refused: the kubelet would exit over it at every start.
	Refused
	// Environment: it fails, but so does the control, in the same way: flags, drop-in files or the binary are to blame, not the
	// configuration.
	Environment
	// Unknown: the pre-flight cannot tell; only a start can.
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
