package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	program = "kubelet-supervisor-controller"
	source  = "https://github.com/kubelet-supervisor/kubelet-supervisor"
	// local is how a node's runtime reads a name without a registry: what is loaded into it needs no pull.
	local = "docker.io/library/"
	// user is nobody's on a node, and not root.
	user = "65532:65532"
)

// content is what is the same on every architecture.
type content struct {
	version   string
	at        time.Time
	documents map[string][]byte
}

type platform struct {
	architecture string
	binary       []byte
}

// write makes the images, and the tar file of their layout.
func (c *content) write(file string, platforms []platform) error {
	var images v1.ImageIndex = empty.Index
	images = mutate.IndexMediaType(images, types.OCIImageIndex)
	for _, p := range platforms {
		image, err := c.image(p)
		if err != nil {
			return fmt.Errorf("making the image for %s: %w", p.architecture, err)
		}
		images = mutate.AppendManifests(images, mutate.IndexAddendum{Add: image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: p.architecture}}})
	}
	index, err := newSpecIndex(mutate.Annotations(images, c.annotations()).(v1.ImageIndex))
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	at, err := layout.Write(folder, empty.Index)
	if err != nil {
		return fmt.Errorf("writing the layout: %w", err)
	}
	err = at.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": c.version, "io.containerd.image.name": local + program + ":" + c.version}))
	if err != nil {
		return fmt.Errorf("writing the layout: %w", err)
	}
	return c.archive(file, folder)
}

func (c *content) annotations() map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":       program,
		"org.opencontainers.image.description": "rolls kubelet configurations out over the nodes of a cluster",
		"org.opencontainers.image.version":     c.version,
		"org.opencontainers.image.source":      source,
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.created":     c.at.Format(time.RFC3339),
	}
}

func (c *content) image(p platform) (v1.Image, error) {
	files, err := c.files(p)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files)), nil },
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image := mutate.MediaType(mutate.ConfigMediaType(empty.Image, types.OCIConfigJSON), types.OCIManifestSchema1)
	image, err = mutate.Append(image, mutate.Addendum{Layer: layer, MediaType: types.OCILayer,
		History: v1.History{Created: v1.Time{Time: c.at}, CreatedBy: program + " " + c.version}})
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", p.architecture, v1.Time{Time: c.at}
	config.Config = v1.Config{User: user, WorkingDir: "/", Entrypoint: []string{"/" + program}, Labels: c.annotations()}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return nil, err
	}
	return mutate.Annotations(image, c.annotations()).(v1.Image), nil
}

// files is the layer: the binary and the documents, and the folders that they are in.
func (c *content) files(p platform) ([]byte, error) {
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	add := func(header tar.Header, data []byte) error {
		header.Size, header.ModTime, header.Format = int64(len(data)), c.at, tar.FormatPAX
		if err := w.WriteHeader(&header); err != nil {
			return err
		}
		_, err := w.Write(data)
		return err
	}
	if err := add(tar.Header{Name: program, Typeflag: tar.TypeReg, Mode: 0o555}, p.binary); err != nil {
		return nil, err
	}
	folder := ""
	for _, name := range []string{"usr", "share", "doc", program} {
		folder = path.Join(folder, name)
		if err := add(tar.Header{Name: folder + "/", Typeflag: tar.TypeDir, Mode: 0o755}, nil); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.documents)) {
		if err := add(tar.Header{Name: path.Join(folder, name), Typeflag: tar.TypeReg, Mode: 0o444}, c.documents[name]); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}

// archive writes a folder into a tar file, in the order of the names and without its own times and owners.
func (c *content) archive(file, folder string) (err error) {
	out, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("writing the image: %w", err)
	}
	defer func() {
		if closeErr := out.Close(); err == nil {
			err = closeErr
		}
	}()
	w := tar.NewWriter(out)
	err = filepath.WalkDir(folder, func(at string, entry os.DirEntry, err error) error {
		if err != nil || at == folder {
			return err
		}
		name, err := filepath.Rel(folder, at)
		if err != nil {
			return err
		}
		header := tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, ModTime: c.at, Format: tar.FormatPAX}
		var data []byte
		if entry.IsDir() {
			header.Name, header.Typeflag, header.Mode = name+"/", tar.TypeDir, 0o755
		} else if data, err = os.ReadFile(at); err != nil {
			return err
		}
		header.Size = int64(len(data))
		if err := w.WriteHeader(&header); err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	})
	if err != nil {
		return fmt.Errorf("writing the image: %w", err)
	}
	return w.Close()
}
