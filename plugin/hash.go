package plugin

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
)

// hashedName adds to a ConfigMap's name the hash of its content that `kubectl create configmap --append-hash` adds: the first ten
// hexadecimal digits of the SHA-256 of JSON with binaryData where there is any, data, kind and name; digits 0, 1 and 3 and
// letters a and e written as g, h, k, m and t, so that no words come of it (k8s.io/kubectl/pkg/util/hash).
func hashedName(name string, data map[string]string, binaryData map[string][]byte) (string, error) {
	content := map[string]any{"kind": "ConfigMap", "name": name, "data": data}
	if len(binaryData) > 0 {
		content["binaryData"] = binaryData
	}
	text, err := json.Marshal(content) // sorts keys
	if err != nil {
		return "", fmt.Errorf("hashing ConfigMap %s: %w", name, err)
	}
	sum := sha256.Sum256(text)
	digits := hex.EncodeToString(sum[:])[:10]
	return name + "-" + strings.NewReplacer("0", "g", "1", "h", "3", "k", "a", "m", "e", "t").Replace(digits), nil
}
