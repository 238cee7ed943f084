package differential

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/kubelet-supervisor/kubelet-supervisor/forecast"
)

// A Record is a case with what the kubelet made of it and what the forecast said, so that the forecast can be held against both without a
// kubelet.
type Record struct {
	Seed   uint64
	Blind  bool
	Case   Case
	Result Result
	Said   []string
}

// Judge makes the forecast anew: what it says, and the faults that it has.
func (r Record) Judge() (said, faults []string) {
	f, faults := judge(r.Case, r.Result, r.Blind)
	return Words(f), faults
}

func judge(c Case, r Result, blind bool) (forecast.Forecast, []string) {
	facts, err := c.Facts(r, blind)
	if err != nil {
		return forecast.Forecast{}, []string{err.Error()}
	}
	f := forecast.Of(facts)
	return f, c.Faults(f, r)
}

// Words are a forecast, a line for each thing that it says.
func Words(f forecast.Forecast) (lines []string) {
	for what, losses := range map[string][]forecast.Loss{"by the change": f.Losses, "static": f.Static, "anyway": f.Anyway, "unmeasured": f.Unmeasured} {
		for _, l := range losses {
			certainty := "perhaps"
			if l.Certain {
				certainty = "certainly"
			}
			lines = append(lines, fmt.Sprintf("%s %s: %s %s", l.Name, certainty, what, l.Reason))
		}
	}
	for what, list := range map[string][]forecast.Unknown{"missing": f.Missing, "doubt": f.Doubts} {
		for _, u := range list {
			lines = append(lines, what+": "+u.What+": "+u.Why)
		}
	}
	slices.Sort(lines)
	return append(lines, fmt.Sprintf("of %d pods %d go by the change, %d of all, and %d hold it", f.Running, f.Least, f.LeastOfAll, f.Harm()))
}

// WriteRecords writes them as ReadRecords reads them.
func WriteRecords(out io.Writer, records []Record) error {
	packed, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		return err
	}
	for _, r := range records {
		if err := json.NewEncoder(packed).Encode(r); err != nil {
			return fmt.Errorf("writing the record of seed %d: %w", r.Seed, err)
		}
	}
	return packed.Close()
}

// ReadRecords reads all.
func ReadRecords(in io.Reader) (records []Record, err error) {
	unpacked, err := gzip.NewReader(in)
	if err != nil {
		return nil, fmt.Errorf("reading records: %w", err)
	}
	for decoder := json.NewDecoder(unpacked); ; {
		var r Record
		switch err := decoder.Decode(&r); {
		case errors.Is(err, io.EOF):
			return records, nil
		case err != nil:
			return nil, fmt.Errorf("reading records: %w", err)
		}
		records = append(records, r)
	}
}
