package main

import (
	"bytes"
	"encoding/json"
	"testing"

	imagespec "github.com/opencontainers/image-spec/specs-go/v1"
)

// A program that decodes the list of images and encodes it again has the same bytes, so that the digest that is signed stays.
func TestTheListIsEncodedAsTheSpecificationHasIt(t *testing.T) {
	root, err := unpack(t, build(t)).ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	top, err := root.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	list, err := root.ImageIndex(top.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := list.RawManifest()
	if err != nil {
		t.Fatal(err)
	}
	var decoded imagespec.Index
	if err := json.Unmarshal(raw, &decoded); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(decoded)
	if err != nil || !bytes.Equal(again, raw) {
		t.Errorf("%v: it is\n%s\nand encoded again\n%s", err, raw, again)
	}
	if bytes.Contains(raw, []byte("artifactType")) {
		t.Errorf("it has a field that skopeo 1.9 does not know:\n%s", raw)
	}
}
