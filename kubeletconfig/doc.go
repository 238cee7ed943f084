// Package kubeletconfig knows everything about KubeletConfiguration and about the kubelet's flags, so that no other package has to.
//
// It digests a payload ([Content]), renders the file that the kubelet is started with ([Render]), and reads from the kubelet's command
// line and files what a supervisor has to know ([EffectiveEndpoints]). Packages commandline and kubeletlog read the flags and the log.
//
// It promises:
//
//   - What it renders differs from the payload only in the paths and feature gates that [Render] names. It never goes through Go types,
//     which would drop fields they do not know and add zero values.
//   - The same input gives the same bytes and the same digest.
//   - It never quotes a payload itself, and cuts what others quote ([Quote]): a payload can hold secrets.
//   - It keeps no state but the digest of the newest executable, and runs nothing.
//
// Precedence between flags, drop-in files and the file stays the kubelet's own business; this package only looks up the few values a
// supervisor needs.
package kubeletconfig
