package differential

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// RECORD=FILE asks the kubelet once more about the cases that stand there, or about those of SEEDS (as 1-100,250), and writes the file anew.
func TestRecord(t *testing.T) {
	file, path := os.Getenv("RECORD"), os.Getenv(program)
	if file == "" || path == "" {
		t.Skip("RECORD names no file, or " + program + " no program; make record-forecast has both")
	}
	seeds, err := seedsOf(os.Getenv("SEEDS"), file)
	if err != nil {
		t.Fatal(err)
	}
	k := begin(t, path)
	if k == nil {
		return
	}
	defer func() { k.close() }()
	var records []Record
	for i, seed := range seeds {
		if i > 0 && i%casesOfOne == 0 {
			k.close()
			if k = begin(t, path); k == nil {
				return
			}
		}
		r := Record{Seed: seed, Case: Make(seed, k.version)}
		if r.Result, err = k.ask(r.Case); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if r.Result.Refused != "" {
			continue
		}
		r.Blind = blind(seed, r.Case)
		var faults []string
		if r.Said, faults = r.Judge(); len(faults) > 0 {
			t.Errorf("SEED=%d: %s", seed, faults[0])
		}
		records = append(records, r)
	}
	if t.Failed() {
		return // the file stays as it was
	}
	if err := write(file, records); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d records in %s", len(records), file)
}

func seedsOf(text, file string) (seeds []uint64, err error) {
	if text == "" {
		old, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer old.Close()
		records, err := ReadRecords(old)
		for _, r := range records {
			seeds = append(seeds, r.Seed)
		}
		return seeds, err
	}
	for part := range strings.SplitSeq(text, ",") {
		var from, to uint64
		if n, _ := fmt.Sscanf(part, "%d-%d", &from, &to); n == 0 {
			return nil, fmt.Errorf("%q are no seeds, such as 1-100,250", part)
		}
		for seed := from; seed <= max(from, to); seed++ {
			seeds = append(seeds, seed)
		}
	}
	return seeds, nil
}

func write(file string, records []Record) error {
	out, err := os.CreateTemp(filepath.Dir(file), "records")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(out.Name()) }()
	if err := WriteRecords(out, records); err != nil {
		return err
	}
	if err := out.Chmod(0o644); err != nil {
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	return os.Rename(out.Name(), file)
}
