//go:build linux

package supervisor

import (
	"context"
	"path/filepath"
	"strings"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/config"
	"github.com/kubelet-supervisor/kubelet-supervisor/decide"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubelet"
)

// unusableBase is the Base of layers that cannot be laid over the node's own file. It equals no digest.
const unusableBase = "unusable"

// compose reads the payload of a version, its layers laid together: over the copy of the node's own file that the version names, else over
// the file itself.
func (l *loop) compose(v decide.Version) (config.Composed, error) {
	payload, err := l.checkpoint(v.Source)
	if err != nil {
		return config.Composed{}, err
	}
	return config.Compose(payload, v.Source.KubeletConfigKey, func() (config.Base, error) { return l.readBase(v) })
}

func (l *loop) readBase(v decide.Version) (config.Base, error) {
	if v.Base == "" || v.Base == unusableBase {
		return config.ReadBase(l.Arguments)
	}
	copied, err := l.copyOf(v)
	if err == nil {
		return copied, nil
	}
	if now, failed := config.ReadBase(l.Arguments); failed == nil && now.Digest == v.Base { // the file is still what was copied
		return now, nil
	}
	return config.Base{}, err
}

// copyOf is the copy of the node's own file that the layers of a version lie over.
func (l *loop) copyOf(v decide.Version) (config.Base, error) {
	copied, err := l.saves.read(func() (map[string]string, error) {
		document, err := l.store.LoadBase(v.Source, v.Base)
		return map[string]string{v.Base: string(document)}, err
	})
	return config.BaseOf(l.Arguments, []byte(copied[v.Base])), err
}

// keepBase sees to it that there is a copy of what the layers of a version that was loaded lie over, for the file may change before the
// kubelet is started again. Without a copy the version can be started as long as the file stays as it is.
func (l *loop) keepBase(v decide.Version) {
	if v.Base == "" {
		return
	}
	if _, err := l.copyOf(v); err == nil {
		return
	}
	base, err := config.ReadBase(l.Arguments)
	if err == nil && base.Digest == v.Base {
		err = l.saves.do(func() error { return l.keeper.base(l.store, v.Source, base) })
	}
	if err != nil {
		l.Logger.Warn("the node's own configuration file could not be kept beside the layers over it", zap.Error(err))
	}
}

// renderComposed gives the file to start a kubelet with.
func (l *loop) renderComposed(source corev1.ConfigMapNodeConfigSource, composed config.Composed) ([]byte, error) {
	return composed.Render(l.store.CheckpointFolder(source), l.Arguments)
}

// keepInTime is keep, but waits for the disk no longer than for any other write: what comes after, a removal above all, has to be heard.
func (l *loop) keepInTime(source corev1.ConfigMapNodeConfigSource, payload map[string]string) (decide.Version, error) {
	var kept decide.Version // nobody reads what a late write puts there
	err := l.saves.do(func() (err error) {
		kept, err = l.keep(source, payload)
		return err
	})
	if err != nil {
		return decide.Version{}, err
	}
	return kept, nil
}

// keep makes a payload durable, and with it the node's own file where its layers lie over it. The version is that of both.
func (l *loop) keep(source corev1.ConfigMapNodeConfigSource, payload map[string]string) (decide.Version, error) {
	if l.store == nil {
		return decide.Version{}, l.unusable
	}
	if err := l.keeper.checkpoint(l.store, source, payload); err != nil {
		return decide.Version{}, err
	}
	return l.keepMerge(source, payload)
}

func (l *loop) keepMerge(source corev1.ConfigMapNodeConfigSource, payload map[string]string) (decide.Version, error) {
	var base config.Base
	composed, err := config.Compose(payload, source.KubeletConfigKey, func() (_ config.Base, err error) {
		base, err = config.ReadBase(l.Arguments)
		return base, err
	})
	if err == nil && composed.Base != "" {
		err = l.keeper.base(l.store, source, base)
	}
	return decide.Version{Source: source, Content: composed.Content(), Base: composed.Base}, err
}

// merge carries out Merge.
func (l *loop) merge(do decide.Merge) decide.Merged {
	merged := decide.Merged{Local: do.Local}
	payload, err := l.checkpoint(do.Version.Source)
	if err == nil {
		var version decide.Version
		if err = l.saves.do(func() (err error) { version, err = l.keepMerge(do.Version.Source, payload); return err }); err == nil {
			merged.Version = &version
		}
	}
	if err != nil {
		merged.Fault = err.Error()
	}
	return merged
}

// layersOf are the layers of a checkpoint; none where it is a whole file.
func (l *loop) layersOf(source corev1.ConfigMapNodeConfigSource) []config.Layer {
	payload, err := l.checkpoint(source)
	if err != nil {
		return nil
	}
	layers, err := config.ReadLayers([]byte(payload[source.KubeletConfigKey]))
	if err != nil {
		return nil
	}
	return layers.Layers
}

// blame leaves out each layer once, and names those without which the kubelet accepts the others.
func (l *loop) blame(ctx context.Context, do decide.Blame) decide.Blamed {
	blamed := decide.Blamed{Content: do.Version.Content, Kubelet: do.Kubelet}
	var guilty []string
	for i, layer := range l.layersOf(do.Version.Source) {
		file, err := l.renderWithout(do.Version, i)
		if err != nil {
			continue
		}
		verdict := l.preflight.Check(ctx, kubelet.Candidate{File: file}, nil)
		removeOwnFile(file)
		if verdict.Outcome == config.Accepted {
			guilty = append(guilty, layer.Name)
		}
		if ctx.Err() != nil {
			return blamed
		}
	}
	if len(guilty) > 0 {
		blamed.Words = "without layer " + strings.Join(guilty, ", or without layer ") + ", it would be accepted"
	}
	return blamed
}

func (l *loop) renderWithout(v decide.Version, layer int) (string, error) {
	payload, err := l.checkpoint(v.Source)
	if err != nil {
		return "", err
	}
	key := v.Source.KubeletConfigKey
	composed, err := config.ComposeWithout(payload, key, layer, func() (config.Base, error) { return l.readBase(v) })
	if err != nil {
		return "", err
	}
	data, err := l.renderComposed(v.Source, composed)
	if err != nil {
		return "", err
	}
	path := filepath.Join(l.RunDir, l.ownFile("without-a-layer"))
	return path, replaceRunFile(path, data)
}
