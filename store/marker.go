//go:build linux

package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const markerSuffix = ".sha256"

// encodeMarker returns what `sha256sum RESOURCEVERSION/*` prints in the folder of the uid, so that people can check a
// checkpoint by `sha256sum --check RESOURCEVERSION.sha256`.
func encodeMarker(version string, sums map[string]string) []byte {
	var marker bytes.Buffer
	for _, key := range slices.Sorted(maps.Keys(sums)) {
		fmt.Fprintf(&marker, "%s  %s/%s\n", sums[key], version, key)
	}
	return marker.Bytes()
}

// decodeMarker returns the checksum, in hexadecimal, of each key that the marker lists. It takes only what encodeMarker
// writes: a marker that was cut short or edited is not one. An empty one is that of an empty payload.
func decodeMarker(version string, marker []byte) (map[string]string, error) {
	sums := map[string]string{}
	for line := range strings.Lines(string(marker)) {
		sum, path, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		key, ok := strings.CutPrefix(path, version+"/")
		raw, err := hex.DecodeString(sum)
		if !ok || err != nil || len(raw) != sha256.Size || checkKey(key) != nil {
			return nil, fmt.Errorf("has a line %.64q that names no file of the checkpoint", line)
		}
		sums[key] = sum
	}
	if !bytes.Equal(encodeMarker(version, sums), marker) {
		return nil, errors.New("is not as it was written")
	}
	return sums, nil
}

func sumsOf(payload map[string]string) map[string]string {
	sums := make(map[string]string, len(payload))
	for key, content := range payload {
		sums[key] = sumOf([]byte(content))
	}
	return sums
}

func sumOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
