package config

import "strings"

// flagKind is how a flag's value becomes that of a field.
type flagKind int

const (
	textFlag   flagKind = iota
	numberFlag          // an integer
	boolFlag            // takes no second word: --some-flag is true
	listFlag            // a,b: more of them add up
	pairsFlag           // a=1,b=2: more of them add up
	pairFlag            // a=1,2: one pair
	limitsFlag          // a<1,b<2: more of them add up
	gatesFlag           // a=true,b=false: also to what the files say
	otherFlag           // in a form of its own, which is not read
)

// flagField is the field that a flag of the kubelet sets.
type flagField struct {
	field string // of a KubeletConfiguration, nested ones behind dots
	kind  flagKind
}

func (f flagField) path() []string { return strings.Split(f.field, ".") }

// flagFields has every flag that sets a field in some kubelet from Kubernetes 1.23 to 1.37 (AddKubeletConfigFlags of
// cmd/kubelet/app/options), by its name. A test holds it against the real kubelet.
var flagFields = map[string]flagField{
	"address":                                      {"address", textFlag},
	"allowed-unsafe-sysctls":                       {"allowedUnsafeSysctls", listFlag},
	"anonymous-auth":                               {"authentication.anonymous.enabled", boolFlag},
	"authentication-token-webhook":                 {"authentication.webhook.enabled", boolFlag},
	"authentication-token-webhook-cache-ttl":       {"authentication.webhook.cacheTTL", textFlag},
	"authorization-mode":                           {"authorization.mode", textFlag},
	"authorization-webhook-cache-authorized-ttl":   {"authorization.webhook.cacheAuthorizedTTL", textFlag},
	"authorization-webhook-cache-unauthorized-ttl": {"authorization.webhook.cacheUnauthorizedTTL", textFlag},
	"cgroup-driver":                                {"cgroupDriver", textFlag},
	"cgroup-root":                                  {"cgroupRoot", textFlag},
	"cgroups-per-qos":                              {"cgroupsPerQOS", boolFlag},
	"client-ca-file":                               {"authentication.x509.clientCAFile", textFlag},
	"cluster-dns":                                  {"clusterDNS", listFlag},
	"cluster-domain":                               {"clusterDomain", textFlag},
	"container-log-max-files":                      {"containerLogMaxFiles", numberFlag},
	"container-log-max-size":                       {"containerLogMaxSize", textFlag},
	"container-runtime-endpoint":                   {"containerRuntimeEndpoint", textFlag},
	"contention-profiling":                         {"enableContentionProfiling", boolFlag},
	"cpu-cfs-quota":                                {"cpuCFSQuota", boolFlag},
	"cpu-cfs-quota-period":                         {"cpuCFSQuotaPeriod", textFlag},
	"cpu-manager-policy":                           {"cpuManagerPolicy", textFlag},
	"cpu-manager-policy-options":                   {"cpuManagerPolicyOptions", pairFlag},
	"cpu-manager-reconcile-period":                 {"cpuManagerReconcilePeriod", textFlag},
	"enable-controller-attach-detach":              {"enableControllerAttachDetach", boolFlag},
	"enable-debugging-handlers":                    {"enableDebuggingHandlers", boolFlag},
	"enable-server":                                {"enableServer", boolFlag},
	"enforce-node-allocatable":                     {"enforceNodeAllocatable", listFlag},
	"event-burst":                                  {"eventBurst", numberFlag},
	"event-qps":                                    {"eventRecordQPS", numberFlag},
	"eviction-hard":                                {"evictionHard", limitsFlag},
	"eviction-max-pod-grace-period":                {"evictionMaxPodGracePeriod", numberFlag},
	"eviction-minimum-reclaim":                     {"evictionMinimumReclaim", pairsFlag},
	"eviction-pressure-transition-period":          {"evictionPressureTransitionPeriod", textFlag},
	"eviction-soft":                                {"evictionSoft", limitsFlag},
	"eviction-soft-grace-period":                   {"evictionSoftGracePeriod", pairsFlag},
	"experimental-kernel-memcg-notification":       {"kernelMemcgNotification", boolFlag}, // up to 1.24
	"fail-cgroupv1":                                {"failCgroupV1", boolFlag},
	"fail-swap-on":                                 {"failSwapOn", boolFlag},
	"feature-gates":                                {"featureGates", gatesFlag},
	"file-check-frequency":                         {"fileCheckFrequency", textFlag},
	"hairpin-mode":                                 {"hairpinMode", textFlag},
	"healthz-bind-address":                         {"healthzBindAddress", textFlag},
	"healthz-port":                                 {"healthzPort", numberFlag},
	"http-check-frequency":                         {"httpCheckFrequency", textFlag},
	"image-gc-high-threshold":                      {"imageGCHighThresholdPercent", numberFlag},
	"image-gc-low-threshold":                       {"imageGCLowThresholdPercent", numberFlag},
	"image-service-endpoint":                       {"imageServiceEndpoint", textFlag},
	"iptables-drop-bit":                            {"iptablesDropBit", numberFlag},       // up to 1.27
	"iptables-masquerade-bit":                      {"iptablesMasqueradeBit", numberFlag}, // up to 1.27
	"kernel-memcg-notification":                    {"kernelMemcgNotification", boolFlag},
	"kube-api-burst":                               {"kubeAPIBurst", numberFlag},
	"kube-api-content-type":                        {"contentType", textFlag},
	"kube-api-qps":                                 {"kubeAPIQPS", numberFlag},
	"kube-reserved":                                {"kubeReserved", pairsFlag},
	"kube-reserved-cgroup":                         {"kubeReservedCgroup", textFlag},
	"kubelet-cgroups":                              {"kubeletCgroups", textFlag},
	"local-storage-capacity-isolation":             {"localStorageCapacityIsolation", boolFlag},
	"log-flush-frequency":                          {"logging.flushFrequency", textFlag},
	"log-json-info-buffer-size":                    {"logging.options.json.infoBufferSize", textFlag},
	"log-json-split-stream":                        {"logging.options.json.splitStream", boolFlag},
	"log-text-info-buffer-size":                    {"logging.options.text.infoBufferSize", textFlag},
	"log-text-split-stream":                        {"logging.options.text.splitStream", boolFlag},
	"logging-format":                               {"logging.format", textFlag},
	"make-iptables-util-chains":                    {"makeIPTablesUtilChains", boolFlag},
	"manifest-url":                                 {"staticPodURL", textFlag},
	"manifest-url-header":                          {"staticPodURLHeader", otherFlag},
	"max-open-files":                               {"maxOpenFiles", numberFlag},
	"max-pods":                                     {"maxPods", numberFlag},
	"memory-manager-policy":                        {"memoryManagerPolicy", textFlag},
	"minimum-image-ttl-duration":                   {"imageMinimumGCAge", textFlag},
	"node-status-max-images":                       {"nodeStatusMaxImages", numberFlag},
	"node-status-update-frequency":                 {"nodeStatusUpdateFrequency", textFlag},
	"oom-score-adj":                                {"oomScoreAdj", numberFlag},
	"pod-cidr":                                     {"podCIDR", textFlag},
	"pod-manifest-path":                            {"staticPodPath", textFlag},
	"pod-max-pids":                                 {"podPidsLimit", numberFlag},
	"pods-per-core":                                {"podsPerCore", numberFlag},
	"port":                                         {"port", numberFlag},
	"protect-kernel-defaults":                      {"protectKernelDefaults", boolFlag},
	"provider-id":                                  {"providerID", textFlag},
	"qos-reserved":                                 {"qosReserved", pairsFlag},
	"read-only-port":                               {"readOnlyPort", numberFlag},
	"register-node":                                {"registerNode", boolFlag},
	"register-with-taints":                         {"registerWithTaints", otherFlag},
	"registry-burst":                               {"registryBurst", numberFlag},
	"registry-qps":                                 {"registryPullQPS", numberFlag},
	"reserved-cpus":                                {"reservedSystemCPUs", textFlag},
	"reserved-memory":                              {"reservedMemory", otherFlag},
	"resolv-conf":                                  {"resolvConf", textFlag},
	"rotate-certificates":                          {"rotateCertificates", boolFlag},
	"rotate-server-certificates":                   {"serverTLSBootstrap", boolFlag},
	"runonce":                                      {"runOnce", boolFlag},
	"runtime-request-timeout":                      {"runtimeRequestTimeout", textFlag},
	"serialize-image-pulls":                        {"serializeImagePulls", boolFlag},
	"streaming-connection-idle-timeout":            {"streamingConnectionIdleTimeout", textFlag},
	"sync-frequency":                               {"syncFrequency", textFlag},
	"system-cgroups":                               {"systemCgroups", textFlag},
	"system-reserved":                              {"systemReserved", pairsFlag},
	"system-reserved-cgroup":                       {"systemReservedCgroup", textFlag},
	"tls-cert-file":                                {"tlsCertFile", textFlag},
	"tls-cipher-suites":                            {"tlsCipherSuites", listFlag},
	"tls-min-version":                              {"tlsMinVersion", textFlag},
	"tls-private-key-file":                         {"tlsPrivateKeyFile", textFlag},
	"topology-manager-policy":                      {"topologyManagerPolicy", textFlag},
	"topology-manager-policy-options":              {"topologyManagerPolicyOptions", pairsFlag},
	"topology-manager-scope":                       {"topologyManagerScope", textFlag},
	"v":                                            {"logging.verbosity", numberFlag},
	"vmodule":                                      {"logging.vmodule", otherFlag},
	"volume-plugin-dir":                            {"volumePluginDir", textFlag},
	"volume-stats-agg-period":                      {"volumeStatsAggPeriod", textFlag},
}
