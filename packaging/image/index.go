package main

import (
	"bytes"
	"encoding/json"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	imagespec "github.com/opencontainers/image-spec/specs-go/v1"
)

// images is an index under a name that its own method ImageIndex leaves free.
type images = v1.ImageIndex

// specIndex is an index whose JSON has the fields in the order of the OCI specification's own types, and no
// artifactType. skopeo copy --preserve-digests decodes a list and encodes it again with these types, and fails unless
// both are the same bytes; 1.9 knows no artifactType.
type specIndex struct {
	images
	raw []byte
}

// newSpecIndex encodes an index again. It returns an error where the index cannot be read.
func newSpecIndex(index v1.ImageIndex) (specIndex, error) {
	made, err := index.RawManifest()
	if err != nil {
		return specIndex{}, fmt.Errorf("reading the index of the images: %w", err)
	}
	var plain imagespec.Index
	if err := json.Unmarshal(made, &plain); err != nil {
		return specIndex{}, fmt.Errorf("reading the index of the images: %w", err)
	}
	for i := range plain.Manifests {
		plain.Manifests[i].ArtifactType = ""
	}
	raw, err := json.Marshal(plain)
	if err != nil {
		return specIndex{}, fmt.Errorf("writing the index of the images: %w", err)
	}
	return specIndex{index, raw}, nil
}

func (s specIndex) RawManifest() ([]byte, error) { return s.raw, nil }

func (s specIndex) IndexManifest() (*v1.IndexManifest, error) {
	return v1.ParseIndexManifest(bytes.NewReader(s.raw))
}

func (s specIndex) Digest() (v1.Hash, error) {
	digest, _, err := v1.SHA256(bytes.NewReader(s.raw))
	return digest, err
}

func (s specIndex) Size() (int64, error) { return int64(len(s.raw)), nil }
