package config

import (
	"fmt"
	"regexp"

	"k8s.io/kubelet/config/v1beta1"
	sigsjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// typesVersion is the version of k8s.io/kubelet that strict decoding is done against.
const typesVersion = "v0.37"

const maxWarnings = 10

// Warnings decodes payload[key] strictly and says, in at most 10 short lines, which fields are unknown to this version's types or appear
// twice. The kubelet decodes leniently and runs with a misspelt field left out. A field can also be newer than these types, or older: a
// warning is never a refusal. Nil when there is nothing to say, or when the document does not decode at all.
func Warnings(payload map[string]string, key string) []string {
	return strictWarnings([]byte(payload[key]))
}

func strictWarnings(document []byte) []string {
	asJSON, err := toJSON(document)
	if err != nil {
		return nil
	}
	var found []string
	if !isJSON(document) { // equal keys are gone from the converted document
		if _, err := yaml.YAMLToJSONStrict(document); err != nil {
			for _, match := range yamlDuplicate.FindAllStringSubmatch(err.Error(), -1) {
				found = append(found, fmt.Sprintf("field %s appears twice (line %s)", match[2], match[1]))
			}
		}
	}
	strict, _ := sigsjson.UnmarshalStrict(asJSON, &v1beta1.KubeletConfiguration{})
	for _, err := range strict {
		match := strictError.FindStringSubmatch(err.Error())
		switch {
		case match == nil:
			found = append(found, err.Error())
		case match[1] == "unknown":
			found = append(found, fmt.Sprintf("field %s is unknown to %s", match[2], typesVersion))
		default:
			found = append(found, fmt.Sprintf("field %s appears twice", match[2]))
		}
	}
	return atMost(found)
}

var (
	yamlDuplicate = regexp.MustCompile(`line (\d+): key ("(?:[^"\\]|\\.)*") already set in map`)
	strictError   = regexp.MustCompile(`^(unknown|duplicate) field (".*")$`)
)

func atMost(found []string) []string {
	if len(found) > maxWarnings {
		more := len(found) - maxWarnings + 1
		found = append(found[:maxWarnings-1:maxWarnings-1], fmt.Sprintf("and %d more", more))
	}
	for i := range found {
		found[i] = Quote(found[i])
	}
	return found
}

// FileWarnings are those about a file; none when it cannot be read.
func FileWarnings(path string) []string {
	if path == "" {
		return nil
	}
	document, err := ReadFile(path)
	if err != nil {
		return nil
	}
	return strictWarnings(document)
}
