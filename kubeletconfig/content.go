package kubeletconfig

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"hash"
	"maps"
	"slices"
)

// Content digests what a payload means to a kubelet, as "sha256:" and 64 hex digits: the KubeletConfiguration in payload[key] as canonical
// JSON, so that comments, key order and layout do not count, and the name and bytes of every other key. A configuration that does not
// decode counts by its bytes. The name of the key itself does not count.
func Content(payload map[string]string, key string) string {
	digest := newDigest()
	document, present := payload[key]
	tree, err := Decode([]byte(document))
	canonical, marshalErr := json.Marshal(tree)
	switch {
	case !present:
		digest.add("missing")
	case err != nil || marshalErr != nil:
		digest.add("bytes", document)
	default:
		digest.add("canonical", string(canonical))
	}
	for _, name := range slices.Sorted(maps.Keys(payload)) {
		if name != key {
			digest.add(name, payload[name])
		}
	}
	return digest.String()
}

// digest is a SHA-256 over strings, each behind its length, so that no two lists of strings run together into the same bytes.
type digest struct{ hash hash.Hash }

func newDigest() digest { return digest{sha256.New()} }

func (d digest) add(parts ...string) {
	for _, part := range parts {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		d.hash.Write(length[:])
		d.hash.Write([]byte(part))
	}
}

func (d digest) String() string { return "sha256:" + hex.EncodeToString(d.hash.Sum(nil)) }
