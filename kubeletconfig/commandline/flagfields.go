package commandline

import "strings"

// Kind is how a flag's value becomes that of a field.
type Kind int

// The kinds of flags.
const (
	Text   Kind = iota
	Number      // an integer
	Bool        // takes no second word: --some-flag is true
	List        // a,b: more of them add up
	Pairs       // a=1,b=2: more of them add up
	Pair        // a=1,2: one pair
	Limits      // a<1,b<2: more of them add up
	Gates       // a=true,b=false: also to what the files say
	Other       // in a form of its own, which is not read
)

// FieldFlag is the field that a flag of the kubelet sets.
type FieldFlag struct {
	Field string // of a KubeletConfiguration, nested ones behind dots
	Kind  Kind
}

// Path returns the names of the field and of those around it, the outermost first.
func (f FieldFlag) Path() []string { return strings.Split(f.Field, ".") }

// Fields has every flag that sets a field in some kubelet from Kubernetes 1.23 to 1.37 (AddKubeletConfigFlags of
// cmd/kubelet/app/options), by its name. A test holds it against the real kubelet.
var Fields = map[string]FieldFlag{
	"address":                                      {"address", Text},
	"allowed-unsafe-sysctls":                       {"allowedUnsafeSysctls", List},
	"anonymous-auth":                               {"authentication.anonymous.enabled", Bool},
	"authentication-token-webhook":                 {"authentication.webhook.enabled", Bool},
	"authentication-token-webhook-cache-ttl":       {"authentication.webhook.cacheTTL", Text},
	"authorization-mode":                           {"authorization.mode", Text},
	"authorization-webhook-cache-authorized-ttl":   {"authorization.webhook.cacheAuthorizedTTL", Text},
	"authorization-webhook-cache-unauthorized-ttl": {"authorization.webhook.cacheUnauthorizedTTL", Text},
	"cgroup-driver":                                {"cgroupDriver", Text},
	"cgroup-root":                                  {"cgroupRoot", Text},
	"cgroups-per-qos":                              {"cgroupsPerQOS", Bool},
	"client-ca-file":                               {"authentication.x509.clientCAFile", Text},
	"cluster-dns":                                  {"clusterDNS", List},
	"cluster-domain":                               {"clusterDomain", Text},
	"container-log-max-files":                      {"containerLogMaxFiles", Number},
	"container-log-max-size":                       {"containerLogMaxSize", Text},
	"container-runtime-endpoint":                   {"containerRuntimeEndpoint", Text},
	"contention-profiling":                         {"enableContentionProfiling", Bool},
	"cpu-cfs-quota":                                {"cpuCFSQuota", Bool},
	"cpu-cfs-quota-period":                         {"cpuCFSQuotaPeriod", Text},
	"cpu-manager-policy":                           {"cpuManagerPolicy", Text},
	"cpu-manager-policy-options":                   {"cpuManagerPolicyOptions", Pair},
	"cpu-manager-reconcile-period":                 {"cpuManagerReconcilePeriod", Text},
	"enable-controller-attach-detach":              {"enableControllerAttachDetach", Bool},
	"enable-debugging-handlers":                    {"enableDebuggingHandlers", Bool},
	"enable-server":                                {"enableServer", Bool},
	"enforce-node-allocatable":                     {"enforceNodeAllocatable", List},
	"event-burst":                                  {"eventBurst", Number},
	"event-qps":                                    {"eventRecordQPS", Number},
	"eviction-hard":                                {"evictionHard", Limits},
	"eviction-max-pod-grace-period":                {"evictionMaxPodGracePeriod", Number},
	"eviction-minimum-reclaim":                     {"evictionMinimumReclaim", Pairs},
	"eviction-pressure-transition-period":          {"evictionPressureTransitionPeriod", Text},
	"eviction-soft":                                {"evictionSoft", Limits},
	"eviction-soft-grace-period":                   {"evictionSoftGracePeriod", Pairs},
	"experimental-kernel-memcg-notification":       {"kernelMemcgNotification", Bool}, // up to 1.24
	"fail-cgroupv1":                                {"failCgroupV1", Bool},
	"fail-swap-on":                                 {"failSwapOn", Bool},
	"feature-gates":                                {"featureGates", Gates},
	"file-check-frequency":                         {"fileCheckFrequency", Text},
	"hairpin-mode":                                 {"hairpinMode", Text},
	"healthz-bind-address":                         {"healthzBindAddress", Text},
	"healthz-port":                                 {"healthzPort", Number},
	"http-check-frequency":                         {"httpCheckFrequency", Text},
	"image-gc-high-threshold":                      {"imageGCHighThresholdPercent", Number},
	"image-gc-low-threshold":                       {"imageGCLowThresholdPercent", Number},
	"image-service-endpoint":                       {"imageServiceEndpoint", Text},
	"iptables-drop-bit":                            {"iptablesDropBit", Number},       // up to 1.27
	"iptables-masquerade-bit":                      {"iptablesMasqueradeBit", Number}, // up to 1.27
	"kernel-memcg-notification":                    {"kernelMemcgNotification", Bool},
	"kube-api-burst":                               {"kubeAPIBurst", Number},
	"kube-api-content-type":                        {"contentType", Text},
	"kube-api-qps":                                 {"kubeAPIQPS", Number},
	"kube-reserved":                                {"kubeReserved", Pairs},
	"kube-reserved-cgroup":                         {"kubeReservedCgroup", Text},
	"kubelet-cgroups":                              {"kubeletCgroups", Text},
	"local-storage-capacity-isolation":             {"localStorageCapacityIsolation", Bool},
	"log-flush-frequency":                          {"logging.flushFrequency", Text},
	"log-json-info-buffer-size":                    {"logging.options.json.infoBufferSize", Text},
	"log-json-split-stream":                        {"logging.options.json.splitStream", Bool},
	"log-text-info-buffer-size":                    {"logging.options.text.infoBufferSize", Text},
	"log-text-split-stream":                        {"logging.options.text.splitStream", Bool},
	"logging-format":                               {"logging.format", Text},
	"make-iptables-util-chains":                    {"makeIPTablesUtilChains", Bool},
	"manifest-url":                                 {"staticPodURL", Text},
	"manifest-url-header":                          {"staticPodURLHeader", Other},
	"max-open-files":                               {"maxOpenFiles", Number},
	"max-pods":                                     {"maxPods", Number},
	"memory-manager-policy":                        {"memoryManagerPolicy", Text},
	"minimum-image-ttl-duration":                   {"imageMinimumGCAge", Text},
	"node-status-max-images":                       {"nodeStatusMaxImages", Number},
	"node-status-update-frequency":                 {"nodeStatusUpdateFrequency", Text},
	"oom-score-adj":                                {"oomScoreAdj", Number},
	"pod-cidr":                                     {"podCIDR", Text},
	"pod-manifest-path":                            {"staticPodPath", Text},
	"pod-max-pids":                                 {"podPidsLimit", Number},
	"pods-per-core":                                {"podsPerCore", Number},
	"port":                                         {"port", Number},
	"protect-kernel-defaults":                      {"protectKernelDefaults", Bool},
	"provider-id":                                  {"providerID", Text},
	"qos-reserved":                                 {"qosReserved", Pairs},
	"read-only-port":                               {"readOnlyPort", Number},
	"register-node":                                {"registerNode", Bool},
	"register-with-taints":                         {"registerWithTaints", Other},
	"registry-burst":                               {"registryBurst", Number},
	"registry-qps":                                 {"registryPullQPS", Number},
	"reserved-cpus":                                {"reservedSystemCPUs", Text},
	"reserved-memory":                              {"reservedMemory", Other},
	"resolv-conf":                                  {"resolvConf", Text},
	"rotate-certificates":                          {"rotateCertificates", Bool},
	"rotate-server-certificates":                   {"serverTLSBootstrap", Bool},
	"runonce":                                      {"runOnce", Bool},
	"runtime-request-timeout":                      {"runtimeRequestTimeout", Text},
	"serialize-image-pulls":                        {"serializeImagePulls", Bool},
	"streaming-connection-idle-timeout":            {"streamingConnectionIdleTimeout", Text},
	"sync-frequency":                               {"syncFrequency", Text},
	"system-cgroups":                               {"systemCgroups", Text},
	"system-reserved":                              {"systemReserved", Pairs},
	"system-reserved-cgroup":                       {"systemReservedCgroup", Text},
	"tls-cert-file":                                {"tlsCertFile", Text},
	"tls-cipher-suites":                            {"tlsCipherSuites", List},
	"tls-min-version":                              {"tlsMinVersion", Text},
	"tls-private-key-file":                         {"tlsPrivateKeyFile", Text},
	"topology-manager-policy":                      {"topologyManagerPolicy", Text},
	"topology-manager-policy-options":              {"topologyManagerPolicyOptions", Pairs},
	"topology-manager-scope":                       {"topologyManagerScope", Text},
	"v":                                            {"logging.verbosity", Number},
	"vmodule":                                      {"logging.vmodule", Other},
	"volume-plugin-dir":                            {"volumePluginDir", Text},
	"volume-stats-agg-period":                      {"volumeStatsAggPeriod", Text},
}
