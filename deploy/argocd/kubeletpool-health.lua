-- Health of a KubeletPool for Argo CD: resource.customizations.health.kubelet-supervisor.io_KubeletPool in ConfigMap argocd-cm.
local health = {status = "Progressing", message = "the controller has not looked at it yet"}
if obj.status == nil or obj.status.conditions == nil or obj.status.observedGeneration ~= obj.metadata.generation then
  return health
end
local is = {}
for _, condition in ipairs(obj.status.conditions) do
  is[condition.type] = condition
end
local ready, progressing, stalled = is.Ready, is.Progressing, is.Stalled
if stalled ~= nil and stalled.status == "True" then
  health.status, health.message = "Degraded", stalled.message
elseif ready ~= nil and ready.status == "True" then
  health.status, health.message = "Healthy", ready.message
elseif ready ~= nil and (ready.reason == "InvalidSpec" or ready.reason == "Conflict") then
  health.status, health.message = "Degraded", ready.message
elseif progressing ~= nil and progressing.reason == "Paused" then
  health.status, health.message = "Suspended", progressing.message
elseif progressing ~= nil then
  health.status, health.message = "Progressing", progressing.reason .. ": " .. progressing.message
end
return health
