//go:build linux

package supervisor

import (
	"path/filepath"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/store"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
)

// unusableBase is the Base of layers that cannot be laid over the node's own file. It equals no digest.
const unusableBase = "unusable"

// payloads are what configurations consist of on the disk: checkpoints, and copies of the node's own file that layers lie over. They are
// kept, composed and rendered here.
type payloads struct {
	*inputs
	store    *store.Store // nil when the state folder cannot be used
	unusable error        // why
	saves    saves
	keeper   keeper
	// a checkpoint is gone: what was downloaded last must be written again
	rewrite chan struct{}
	read    func(corev1.ConfigMapNodeConfigSource) (map[string]string, error) // of a checkpoint, off the disk
}

func newPayloads(in *inputs) *payloads {
	p := &payloads{inputs: in, saves: newSaves(), rewrite: make(chan struct{}, 1)}
	p.read = func(source corev1.ConfigMapNodeConfigSource) (map[string]string, error) {
		return p.store.LoadCheckpoint(source)
	}
	return p
}

// checkpoint reads a payload. A disk that hangs costs a configuration, and no kubelet: a read waits for it no longer than a write.
func (p *payloads) checkpoint(source corev1.ConfigMapNodeConfigSource) (map[string]string, error) {
	return p.saves.read(func() (map[string]string, error) { return p.read(source) })
}

// compose reads the payload of a version, its layers laid together: over the copy of the node's own file that the version names, else over
// the file itself.
func (p *payloads) compose(v core.Version) (kubeletconfig.Composed, error) {
	payload, err := p.checkpoint(v.Source)
	if err != nil {
		return kubeletconfig.Composed{}, err
	}
	return kubeletconfig.Compose(payload, v.Source.KubeletConfigKey, func() (kubeletconfig.Base, error) { return p.readBase(v) })
}

func (p *payloads) readBase(v core.Version) (kubeletconfig.Base, error) {
	if v.Base == "" || v.Base == unusableBase {
		return kubeletconfig.ReadBase(p.Arguments)
	}
	copied, err := p.copyOf(v)
	if err == nil {
		return copied, nil
	}
	if now, failed := kubeletconfig.ReadBase(p.Arguments); failed == nil && now.Digest == v.Base { // the file is still what was copied
		return now, nil
	}
	return kubeletconfig.Base{}, err
}

// copyOf is the copy of the node's own file that the layers of a version lie over.
func (p *payloads) copyOf(v core.Version) (kubeletconfig.Base, error) {
	copied, err := p.saves.read(func() (map[string]string, error) {
		document, err := p.store.LoadBase(v.Source, v.Base)
		return map[string]string{v.Base: string(document)}, err
	})
	return kubeletconfig.BaseOf(p.Arguments, []byte(copied[v.Base])), err
}

// keepBase sees to it that there is a copy of what the layers of a version that was loaded lie over, because the file may change before the
// kubelet is started again. Without a copy the version can be started as long as the file stays as it is.
func (p *payloads) keepBase(v core.Version) {
	if v.Base == "" {
		return
	}
	if _, err := p.copyOf(v); err == nil {
		return
	}
	base, err := kubeletconfig.ReadBase(p.Arguments)
	if err == nil && base.Digest == v.Base {
		err = p.saves.do(func() error { return p.keeper.base(p.store, v.Source, base) })
	}
	if err != nil {
		p.Logger.Warn("the node's own configuration file could not be kept with the layers over it", zap.Error(err))
	}
}

// renderComposed returns the file to start a kubelet with.
func (p *payloads) renderComposed(source corev1.ConfigMapNodeConfigSource, composed kubeletconfig.Composed) ([]byte, error) {
	return composed.Render(p.store.CheckpointFolder(source), p.Arguments)
}

// keepInTime is keep, but waits for the disk no longer than for any other write: what comes after, a removal above all, has to be heard.
func (p *payloads) keepInTime(source corev1.ConfigMapNodeConfigSource, payload map[string]string) (core.Version, error) {
	var kept core.Version // nothing reads what a late write puts there
	err := p.saves.do(func() (err error) {
		kept, err = p.keep(source, payload)
		return err
	})
	if err != nil {
		return core.Version{}, err
	}
	return kept, nil
}

// keep makes a payload durable, and with it the node's own file where its layers lie over it. The version is that of both.
func (p *payloads) keep(source corev1.ConfigMapNodeConfigSource, payload map[string]string) (core.Version, error) {
	if p.store == nil {
		return core.Version{}, p.unusable
	}
	if err := p.keeper.checkpoint(p.store, source, payload); err != nil {
		return core.Version{}, err
	}
	return p.keepMerge(source, payload)
}

func (p *payloads) keepMerge(source corev1.ConfigMapNodeConfigSource, payload map[string]string) (core.Version, error) {
	var base kubeletconfig.Base
	composed, err := kubeletconfig.Compose(payload, source.KubeletConfigKey, func() (_ kubeletconfig.Base, err error) {
		base, err = kubeletconfig.ReadBase(p.Arguments)
		return base, err
	})
	if err == nil && composed.Base != "" {
		err = p.keeper.base(p.store, source, base)
	}
	return core.Version{Source: source, Content: composed.Content(), Base: composed.Base}, err
}

// merge carries out Merge.
func (p *payloads) merge(do core.Merge) core.Merged {
	merged := core.Merged{Local: do.Local}
	payload, err := p.checkpoint(do.Version.Source)
	if err == nil {
		var version core.Version
		if err = p.saves.do(func() (err error) { version, err = p.keepMerge(do.Version.Source, payload); return err }); err == nil {
			merged.Version = &version
		}
	}
	if err != nil {
		merged.Fault = err.Error()
	}
	return merged
}

// layersOf are the layers of a checkpoint; none where it is a whole file.
func (p *payloads) layersOf(source corev1.ConfigMapNodeConfigSource) []kubeletconfig.Layer {
	payload, err := p.checkpoint(source)
	if err != nil {
		return nil
	}
	layers, err := kubeletconfig.ReadLayers([]byte(payload[source.KubeletConfigKey]))
	if err != nil {
		return nil
	}
	return layers.Layers
}

// render writes the effective file of v and returns its path; empty for local, whose command line stays as it is.
func (p *payloads) render(v *core.Version, path string) (string, error) {
	if v == nil {
		return "", nil
	}
	if p.store == nil {
		return "", p.unusable
	}
	composed, err := p.compose(*v)
	if err != nil {
		select {
		case p.rewrite <- struct{}{}:
		default: // asked for already
		}
		return "", err
	}
	data, err := p.renderComposed(v.Source, composed)
	if err != nil {
		return "", err
	}
	path = filepath.Join(p.RunDir, path)
	return path, replaceRunFile(path, data)
}

// configFileOf returns where the container runtime's endpoint of a version can be read; empty for local.
func (p *payloads) configFileOf(v *core.Version) string {
	if v == nil || p.store == nil {
		return ""
	}
	if len(p.layersOf(v.Source)) > 0 {
		file, _ := p.render(v, "effective/fallback.yaml")
		return file
	}
	return filepath.Join(p.store.CheckpointFolder(v.Source), v.Source.KubeletConfigKey)
}
