package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
)

const (
	apiVersion = "krew.googlecontainertools.github.com/v1alpha2"
	kind       = "Plugin"
)

var (
	safeName   = regexp.MustCompile(`^[\w-]+$`)
	sha256Text = regexp.MustCompile(`^[a-f0-9]{64}$`)
)

// problems checks a manifest by the rules of Krew v0.4: internal/index/validation/validate.go (ValidatePlugin, validatePlatform,
// validateFiles, validateSelector) and internal/installation/semver/version.go. Krew's module has them in internal packages. Two rules
// are of krew-index's own check: a platform per system, and a short description of at most 50 characters.
func problems(m manifest) (found []error) {
	wrong := func(bad bool, format string, values ...any) {
		if bad {
			found = append(found, fmt.Errorf(format, values...))
		}
	}
	spec := m.Spec
	wrong(m.APIVersion != apiVersion, "apiVersion is %q, not %q", m.APIVersion, apiVersion)
	wrong(m.Kind != kind, "kind is %q, not %q", m.Kind, kind)
	wrong(!safeName.MatchString(m.Metadata.Name), "name %q does not match %s", m.Metadata.Name, safeName)
	wrong(spec.ShortDescription == "", "there is no shortDescription")
	wrong(strings.ContainsAny(spec.ShortDescription, "\r\n"), "shortDescription has a line break")
	wrong(len(spec.ShortDescription) > 50, "shortDescription has %d characters; 50 are shown", len(spec.ShortDescription))
	_, err := version.ParseSemantic(spec.Version)
	wrong(!strings.HasPrefix(spec.Version, "v") || err != nil, "version %q is no semantic version that begins with v", spec.Version)
	wrong(len(spec.Platforms) == 0, "there is no platform")
	var systems []string
	for _, p := range spec.Platforms {
		system := metav1.FormatLabelSelector(p.Selector)
		wrong(slices.Contains(systems, system), "two platforms are for %s", system)
		systems = append(systems, system)
		if err := errors.Join(platformProblems(p)...); err != nil {
			found = append(found, fmt.Errorf("platform %s: %w", system, err))
		}
	}
	return found
}

func platformProblems(p platform) (found []error) {
	wrong := func(bad bool, words string) {
		if bad {
			found = append(found, errors.New(words))
		}
	}
	wrong(p.URI == "", "uri is empty")
	wrong(!sha256Text.MatchString(p.SHA256), "sha256 is not 64 lower-case hex digits")
	wrong(p.Bin == "", "bin is empty")
	wrong(p.Files != nil && len(p.Files) == 0, "files is there and empty")
	wrong(slices.ContainsFunc(p.Files, func(f fileOperation) bool { return f.From == "" || f.To == "" }), "a file has no from or no to")
	if p.Selector == nil || len(p.Selector.MatchLabels)+len(p.Selector.MatchExpressions) == 0 {
		return append(found, errors.New("selector is empty"))
	}
	for key := range p.Selector.MatchLabels {
		wrong(key != "os" && key != "arch", "selector has the label "+key)
	}
	for _, expression := range p.Selector.MatchExpressions {
		wrong(expression.Key != "os" && expression.Key != "arch", "selector has the label "+expression.Key)
	}
	return found
}
